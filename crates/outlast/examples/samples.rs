//! All sample tools in one MCP server: `cargo run --example samples -- [--store URL] [--http
//! ADDRESS]`.
//!
//! It serves standard input and output, so you can add it to the configuration of any host, or
//! Streamable HTTP, where it prints its URL. `confirm_and_sample` shows how a tool asks the user
//! and the model of its client.

#[path = "tools/analysis.rs"]
mod analysis;
#[path = "tools/confirm.rs"]
mod confirm;
#[path = "tools/long_running.rs"]
mod long_running;

use std::sync::Arc;
use std::time::Duration;

use outlast::engine::Engine;
use outlast::server::{McpServer, RUNNER, ServerInfo};
use outlast::transport::{self, http::HttpOptions};
use outlast::{TaskSupport, Tool, Tools};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut http, mut store) = (None, "memory:".to_owned());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--store", Some(url)) => store = url,
            ("--http", Some(address)) => http = Some(address.parse()?),
            _ => return Err("usage: samples [--store URL] [--http ADDRESS]".into()),
        }
    }

    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let tools = Tools::new()
        .with(analysis::long_running_analysis())
        .with(long_running::long_running_task())
        .with(confirm::confirm_and_sample())
        .with(failing());
    let tools = Arc::new(tools);
    let builder = Engine::builder(store.clone()).runner(RUNNER, tools.clone());
    let (engine, _) = builder.open().await?;
    let about = ServerInfo {
        name: "samples".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let front = McpServer::new(engine.clone(), tools, about);
    match http {
        None => transport::stdio::serve(front).await?,
        Some(bind) => {
            let options = HttpOptions {
                bind,
                ..HttpOptions::default()
            };
            let server = transport::http::serve(front, options).await?;
            println!("{}", server.url());
            tokio::signal::ctrl_c().await?;
            server.shutdown().await;
        }
    }
    engine.shutdown(Duration::from_secs(10)).await?;
    store.close().await?;
    Ok(())
}

/// Fails: the model gets the reason as the result of its call.
fn failing() -> Tool {
    Tool::new("failing", "Fails after a moment", |_, _| async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Err("it broke on purpose".into())
    })
    .task(TaskSupport::Optional)
}
