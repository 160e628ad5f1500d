//! The upstream of the tests with several nodes: `counted FOLDER [ADDRESS]`.
//!
//! It has no tasks. Each run of a tool appends the argument `id` to `FOLDER/runs`, so that a test
//! can count the runs of each call. Without an address it serves standard input and output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast::tools::{Arguments, Hints, ToolFailure};
use outlast::{Server, ServerError, TaskSupport, Tool, ToolContext, text};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let mut args = std::env::args().skip(1);
    let folder: Arc<PathBuf> = Arc::new(args.next().expect("a folder").into());
    let tool = |name: &'static str, says: &str| {
        let folder = folder.clone();
        let tool = Tool::new(name, says, move |args, cx| {
            run(folder.clone(), name, args, cx)
        });
        tool.task(TaskSupport::Forbidden)
    };
    let server = Server::builder("counted", "1")
        .tool(tool("once", "Waits, and may have done something."))
        .tool(tool("reads", "Waits, and only reads.").hints(Hints::READ_ONLY))
        .tool(tool("asks", "Asks who is there."))
        .build();
    let Some(address) = args.next() else {
        return server.serve_stdio().await;
    };
    let running = server.serve_http(&address).await?;
    println!("{}", running.url());
    // The process that started it kills it.
    std::future::pending().await
}

async fn run(
    folder: Arc<PathBuf>,
    name: &str,
    args: Arguments,
    cx: ToolContext,
) -> Result<Value, ToolFailure> {
    record(&folder, args.text("id")?)?;
    tokio::time::sleep(Duration::from_millis(args.number("ms", 0.0)? as u64)).await;
    if name != "asks" {
        return Ok(text(name));
    }
    let form = json!({
        "mode": "form",
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    let response = cx.elicit_raw(form).await?;
    let name = response["content"]["name"].as_str();
    Ok(text(format!("Hello, {}!", name.unwrap_or("stranger"))))
}

/// Appends a line to the file that the test reads.
fn record(folder: &Path, id: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    let mut file = options
        .create(true)
        .append(true)
        .open(folder.join("runs"))?;
    // One write, so that concurrent processes do not mix their lines.
    file.write_all(format!("{id}\n").as_bytes())
}
