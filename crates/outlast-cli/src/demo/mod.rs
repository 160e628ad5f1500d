//! `outlast demo`: a client calls sample tools as durable tasks of a server in the same process.
//!
//! The client stores a reference to each of its tasks. If the process is killed, the next run
//! recovers the tasks, and the same client continues with its references until it has every
//! outcome.

mod board;
mod client;
mod interrupted;
mod serve;
mod tools;

use std::time::Duration;

use outlast::Server;
use outlast::store::StoreUrl;
use tracing::level_filters::LevelFilter;

use crate::args;
use crate::dirs;
use crate::exit::Failure;
use crate::interrupts::{STOPPING_MESSAGE, StopSignals};
use crate::logs;
use crate::terminal::{self, StyledLine, Tone, say};
use client::DemoClient;

pub(crate) async fn run(args: args::Demo) -> Result<(), Failure> {
    logs::to_stderr(&args.logs, LevelFilter::WARN)?;
    let mut signals = StopSignals::listen()?;
    let url = match &args.store {
        Some(url) => url.clone(),
        None => dirs::demo_store()?,
    };
    let interrupted = interrupted::find(&url)?;
    let store = outlast::store::open_store(&url, Default::default()).await?;
    let server = Server::builder("outlast-demo", env!("CARGO_PKG_VERSION"))
        .tools(tools::samples(Duration::from_millis(args.step_ms)))
        .store(store.clone());
    if let Some(address) = args.http {
        // If the address is in use, print only that error.
        let (server, console) = serve::listen(server, address, &url).await?;
        welcome(&url);
        interrupted::print(&interrupted, server.engine()).await?;
        serve::print(&server, &console, address);
        signals.next().await;
        say!("{STOPPING_MESSAGE}");
        signals.during(server.shutdown()).await?;
        return Ok(());
    }

    let server = server.build().start().await?;
    welcome(&url);
    interrupted::print(&interrupted, server.engine()).await?;
    let client = DemoClient::connect(server.mcp().clone(), store).await?;
    let done = tokio::select! {
        done = client.run(args.rounds) => done,
        () = signals.next() => {
            say!("{STOPPING_MESSAGE}");
            Ok(())
        }
    };
    let stopping = async {
        client.close().await;
        server.shutdown().await
    };
    signals.during(stopping).await?;
    done?;
    if url != StoreUrl::Memory {
        print_stored_tasks(&url)?;
    }
    Ok(())
}

/// Prints whether every task of the store has its outcome. A run that was stopped can leave others.
fn print_stored_tasks(url: &StoreUrl) -> Result<(), Failure> {
    let store = dirs::store_argument(url);
    say!("");
    match interrupted::find(url)?.len() {
        0 => say!("Every outcome is stored. To list the tasks:"),
        open => {
            let tasks = match open {
                1 => "1 task has".to_owned(),
                several => format!("{several} tasks have"),
            };
            say!("{tasks} no outcome yet. Run the demo again: the same client continues.");
            say!("To list the tasks:");
        }
    }
    say!("  outlast tasks list --store {store}");
    Ok(())
}

fn welcome(url: &StoreUrl) {
    let title = "Outlast demo: every call is a task that outlasts this process.";
    terminal::err(StyledLine::new().tone(Tone::Strong, title));
    let row = |name: &str, value: String| {
        let name = StyledLine::new().tone(Tone::Muted, format_args!("  {name}  "));
        terminal::err(name.text(value));
    };
    row("store  ", dirs::store_argument(url));
    let id = std::process::id();
    row(
        "kill it",
        format!("kill -9 {id}   (in another terminal), then run it again"),
    );
    say!("");
}
