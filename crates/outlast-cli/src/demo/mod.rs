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

use std::sync::Arc;
use std::time::Duration;

use outlast::Tools;
use outlast::engine::Engine;
use outlast::server::{McpServer, RUNNER, ServerInfo};
use outlast::store::StoreUrl;
use tracing::level_filters::LevelFilter;

use crate::args;
use crate::dirs;
use crate::exit::Failure;
use crate::interrupts::{STOPPING_MESSAGE, StopSignals};
use crate::logs;
use crate::terminal::{self, Line, Tone, say};
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
    let tools = Arc::new(tools::samples(Duration::from_millis(args.step_ms)));
    let builder = Engine::builder(store.clone()).runner(RUNNER, tools.clone());
    let (engine, _) = builder.open().await?;
    let mcp = mcp_server(&engine, tools);
    // If the address is in use, print only that error.
    let server = match args.http {
        Some(address) => Some(serve::listen(mcp.clone(), address).await?),
        None => None,
    };
    welcome(&url);
    interrupted::print(&interrupted, &engine).await?;
    if let Some(server) = server {
        serve::print(&server);
        signals.next().await;
        say!("{STOPPING_MESSAGE}");
        let stopping = async {
            let drained = engine.shutdown(DRAIN_TIMEOUT).await;
            server.shutdown().await;
            drained
        };
        signals.during(stopping).await?;
        store.close().await?;
        return Ok(());
    }

    let client = DemoClient::connect(mcp, store.clone()).await?;
    let done = tokio::select! {
        done = client.run(args.rounds) => done,
        () = signals.next() => {
            say!("{STOPPING_MESSAGE}");
            Ok(())
        }
    };
    let stopping = async {
        client.close().await;
        engine.clone().shutdown(DRAIN_TIMEOUT).await
    };
    signals.during(stopping).await?;
    done?;
    say!("");
    say!("Every outcome is stored. To list the tasks:");
    say!(
        "  outlast tasks list --store {}",
        dirs::store_argument(&url)
    );
    store.close().await?;
    Ok(())
}

fn welcome(url: &StoreUrl) {
    let title = "Outlast demo: every call is a task that outlasts this process.";
    terminal::err(Line::new().tone(Tone::Strong, title));
    let row = |name: &str, value: String| {
        let name = Line::new().tone(Tone::Muted, format_args!("  {name}  "));
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

/// A server with the sample tools.
fn mcp_server(engine: &Engine, tools: Arc<Tools>) -> Arc<McpServer> {
    let about = ServerInfo {
        name: "outlast-demo".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    McpServer::new(engine.clone(), tools, about)
}

/// The time that running calls have when the demo stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
