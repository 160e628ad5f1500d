//! `outlast inspect`: the console as a client of one server.

use outlast::client::ConnectionName;
use outlast::store::MemoryStore;
use outlast::transport::http::{self, Fallback, HttpOptions};
use outlast_console::Console;
use outlast_console::workspace::{Address, ConnectionSpec, Mode};
use outlast_engine::Engine;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;

use crate::args::{Inspect, ProtocolChoice};
use crate::exit::Failure;
use crate::interrupts::StopSignals;
use crate::logs;
use crate::target::{self, ServerAddress};
use crate::terminal::{self, say, show};

pub(crate) async fn run(args: Inspect) -> Result<(), Failure> {
    logs::to_stderr(&args.logs, LevelFilter::WARN)?;
    let mut signals = StopSignals::listen()?;
    let (name, address) = target::address(&args.server_args, args.target.as_deref())?;
    let name = host_and_port(name);
    let source = match &args.server_args.command[..] {
        [] => "command line",
        [..] => "command",
    };
    let mut spec = ConnectionSpec::new(
        ConnectionName::new(name.as_str(), source),
        console_address(address),
    );
    spec.mode = match args.server_args.how {
        ProtocolChoice::Auto => Mode::Auto,
        ProtocolChoice::V1 => Mode::V1,
        ProtocolChoice::V2 => Mode::V2,
        ProtocolChoice::Plain => Mode::Plain,
    };
    // The tasks of the server stay at the server.
    let (engine, _) = Engine::builder(Arc::new(MemoryStore::new())).open().await?;
    let console = Console::builder(engine)
        .title("Outlast")
        .token_hint("Run `outlast inspect` again: it prints a new link.")
        .connection(spec)
        .build();
    let options = HttpOptions::default()
        .with_bind(args.http)
        .with_fallback(Fallback::new(console.clone().into_service()));
    let listener = http::serve_all(Vec::new(), None, options).await;
    let listener = listener.map_err(|error| {
        Failure::Usage(format!(
            "cannot listen on {}: {error}\n  next: choose another address with --http",
            args.http
        ))
    })?;
    let link = console.sign_in_path();
    let query = link.split_once('?').map_or("", |(_, query)| query);
    show!("http://{}/tools?{query}", listener.local_addr());
    terminal::warn_of_other_machines(args.http.ip());
    say!("the console of {name}; the link works once. Ctrl-C ends it.");
    signals.next().await;
    console.close().await;
    signals.during(listener.shutdown()).await;
    Ok(())
}

/// Shortens a URL to its host and port. Any other name stays.
fn host_and_port(name: String) -> String {
    let host = url::Url::parse(&name).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(
            url.port()
                .map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
        )
    });
    host.unwrap_or(name)
}

fn console_address(address: ServerAddress) -> Address {
    match address {
        ServerAddress::Http { url, headers } => Address::Url { url, headers },
        ServerAddress::Command {
            program,
            args,
            env,
            directory,
        } => Address::Command {
            program,
            args,
            env,
            directory,
        },
    }
}
