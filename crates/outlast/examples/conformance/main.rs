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

use std::sync::Arc;
use std::time::Duration;

use outlast::server::ServerInfo;
use outlast::transport::http::{HttpOptions, serve};
use outlast::{LocalServer, Outlast, Tool, Tools};

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
    let options = HttpOptions {
        bind: address.parse()?,
        // The server closes the stream of `test_reconnection` while the tool still runs, so that
        // the suite has to reconnect.
        max_stream_duration: Some(Duration::from_secs(1)),
        ..HttpOptions::default()
    };
    // Some tools notify clients through the server. The server is built after its tools and set
    // below.
    let place = modern::Place::default();
    let tools: [Vec<Tool>; 5] = [
        plain::tools(),
        asks::tools(),
        tasks::tools(),
        first::tools(),
        modern::tools(&place),
    ];
    let tools = tools.into_iter().flatten().fold(Tools::new(), Tools::with);
    let about = ServerInfo {
        name: "outlast-conformance".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let own = LocalServer::new(Arc::new(tools), about)
        .prompts(catalogue::prompts().with(first::prompt()))
        .resources(catalogue::resources());
    let own = Arc::new(own);
    // It is the backend and the runner.
    let server = Outlast::builder().build().serve(own.clone(), own);
    let (_engine, front) = server.open().await?;
    let _ = place.set(front.clone());
    let running = serve(front, options).await?;
    println!("{}", running.url());
    tokio::signal::ctrl_c().await?;
    running.shutdown().await;
    Ok(())
}

const USAGE: &str = "usage: conformance --http ADDRESS, such as 127.0.0.1:0";
