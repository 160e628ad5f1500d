//! The tools that the official conformance suite wants of a server of 2026-07-28 with tasks:
//! `cargo run --example conformance_modern -- ADDRESS`, then
//! `conformance server --url URL --suite pending` with the URL that is printed.

#[path = "tools/suite.rs"]
mod suite;

use std::sync::Arc;

use outlast::Tools;
use outlast::engine::{Engine, MemoryStore};
use outlast::front::{About, Front, RUNNER};
use outlast::transport::http::{HttpOptions, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bind = std::env::args().nth(1);
    let bind = bind.as_deref().unwrap_or("127.0.0.1:0").parse()?;
    let place = suite::Place::default();
    let tools = suite::tools(&place)
        .into_iter()
        .fold(Tools::new(), Tools::with);
    let tools = Arc::new(tools);
    let builder = Engine::builder(Arc::new(MemoryStore::new())).runner(RUNNER, tools.clone());
    let (engine, _) = builder.open().await?;
    let about = About {
        name: "conformance".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let front = Front::new(engine, tools, about);
    let _ = place.set(front.clone());
    let options = HttpOptions {
        bind,
        ..HttpOptions::default()
    };
    let server = serve(front, options).await?;
    println!("{}", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
