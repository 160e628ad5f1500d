//! The test-tasks server: `cargo run --example test_tasks`.
//!
//! An MCP server of 2025-11-25 on standard input and output, as a host starts it, with one tool,
//! `long_running_task`, that runs only as a task. Tasks are kept in memory and end with the
//! process.

#[path = "tools/long_running.rs"]
mod long_running;

use std::sync::Arc;
use std::time::Duration;

use outlast::Tools;
use outlast::engine::{Engine, MemoryStore};
use outlast::server::{McpServer, RUNNER, ServerInfo};
use outlast::transport::stdio;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Arc::new(Tools::new().with(long_running::long_running_task()));
    let builder = Engine::builder(Arc::new(MemoryStore::new())).runner(RUNNER, tools.clone());
    let (engine, _) = builder.open().await?;
    let about = ServerInfo {
        name: "test-tasks".into(),
        version: "1.0.0".into(),
        instructions: None,
    };
    stdio::serve(McpServer::new(engine.clone(), tools, about)).await?;
    engine.shutdown(Duration::ZERO).await?;
    Ok(())
}
