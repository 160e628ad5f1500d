//! The server for the official conformance suite: `cargo run --release --example conformance --
//! --http ADDRESS`.
//!
//! The conformance suite defines the names and texts of these tools, prompts and resources. `cargo
//! xtask conformance` starts this server and runs the suite against it.

mod asks;
mod catalogue;
mod first;
mod modern;
mod plain;
mod questions;
mod tasks;

use std::time::Duration;

use outlast::prelude::*;
use outlast::transport::http::HttpOptions;

/// An image with one red pixel.
const PIXEL: &[u8] = include_bytes!("pixel.png");
/// A millisecond of silence.
const SILENCE: &[u8] = include_bytes!("silence.wav");

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [flag, address] = args.as_slice() else {
        return Err(USAGE.into());
    };
    if flag != "--http" {
        return Err(USAGE.into());
    }
    let options = HttpOptions::default()
        // The server closes the stream of `test_reconnection` while the tool still runs, so that
        // the suite has to reconnect.
        .with_max_stream_duration(Duration::from_secs(1));
    // Some tools notify clients through the server. The server is built after its tools and set
    // below.
    let server_slot = modern::McpServerSlot::default();
    let tools: [Vec<Tool>; 5] = [
        plain::tools(),
        asks::tools(),
        tasks::tools(),
        first::tools(),
        modern::tools(&server_slot),
    ];
    let server = Server::builder("outlast-conformance", env!("CARGO_PKG_VERSION"))
        .tools(tools.into_iter().flatten())
        .prompts(catalogue::prompts().with(first::prompt()))
        .resources(catalogue::resources())
        .http(options)
        .build()
        .serve_http(address)
        .await?;
    let _ = server_slot.set(server.mcp().clone());
    println!("{}", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await?;
    Ok(())
}

const USAGE: &str = "usage: conformance --http ADDRESS, such as 127.0.0.1:0";
