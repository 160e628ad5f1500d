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

use std::time::Duration;

use outlast::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut http, mut store) = (None, "memory:".to_owned());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--store", Some(url)) => store = url,
            ("--http", Some(address)) => http = Some(address),
            _ => return Err("usage: samples [--store URL] [--http ADDRESS]".into()),
        }
    }

    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let server = Server::builder("samples", env!("CARGO_PKG_VERSION"))
        .store(store)
        .tool(analysis::long_running_analysis())
        .tool(long_running::long_running_task())
        .tool(confirm::confirm_and_sample())
        .tool(failing())
        .build();
    match http {
        None => server.serve_stdio().await?,
        Some(address) => {
            let server = server.serve_http(&address).await?;
            println!("{}", server.url());
            tokio::signal::ctrl_c().await?;
            server.shutdown().await?;
        }
    }
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
