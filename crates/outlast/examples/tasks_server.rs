//! The TasksServer sample: `cargo run --example tasks_server -- [--port N] [--store URL]`.
//!
//! An MCP server of 2025-11-25 over Streamable HTTP on localhost, by default on port 5000, with one
//! tool, `LongRunningAnalysis`, that runs as a task if the caller requests one. The tool only needs
//! `.task(TaskSupport::Optional)`: the capability, `execution.taskSupport` in the list of tools and
//! the four `tasks/` methods follow from it.
//!
//! Try it with the MCP Inspector: connect to the URL that is printed, call the tool with `task: {
//! "ttl": 60000 }`, and send `tasks/get` and `tasks/result`.

#[path = "tools/analysis.rs"]
mod analysis;

use outlast::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut port, mut store): (u16, _) = (5000, "memory:".to_owned());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--port", Some(number)) => port = number.parse()?,
            ("--store", Some(url)) => store = url,
            _ => return Err("usage: tasks_server [--port N] [--store URL]".into()),
        }
    }

    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let server = Server::builder("TasksServer", "1.0.0")
        .store(store)
        .tool(analysis::long_running_analysis())
        .build()
        .serve_http(&format!("127.0.0.1:{port}"))
        .await?;
    println!("{}", server.url());

    tokio::signal::ctrl_c().await?;
    server.shutdown().await?;
    Ok(())
}
