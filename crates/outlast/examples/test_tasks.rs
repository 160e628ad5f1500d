//! The test-tasks server: `cargo run --example test_tasks`.
//!
//! An MCP server of 2025-11-25 on standard input and output, as a host starts it, with one tool,
//! `long_running_task`, that runs only as a task. Tasks are kept in memory and end with the
//! process.

#[path = "tools/long_running.rs"]
mod long_running;

use outlast::prelude::*;

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    Server::builder("test-tasks", "1.0.0")
        .tool(long_running::long_running_task())
        .build()
        .serve_stdio()
        .await
}
