//! The upstream of the tests that kill the gateway: `every_kind FOLDER plain|tasks [ADDRESS]`.
//!
//! It has tasks or not, on standard input and output or over HTTP. Each call of a tool writes a
//! line to `FOLDER/runs` and continues when the file `FOLDER/go` exists. A call that has received
//! its input response writes to `FOLDER/answers` first.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast::tools::{Hints, ToolFailure};
use outlast::{Server, ServerError, TaskSupport, Tool, ToolContext, text};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let mut args = std::env::args().skip(1);
    let folder: Arc<PathBuf> = Arc::new(args.next().expect("a folder").into());
    let support = match args.next().as_deref() {
        Some("tasks") => TaskSupport::Optional,
        _ => TaskSupport::Forbidden,
    };
    let tool = |name: &'static str, description: &str| {
        let folder = folder.clone();
        let tool = Tool::new(name, description, move |args, cx| {
            run(folder.clone(), args.get("ask").is_some(), cx)
        });
        tool.task(support)
    };
    let server = Server::builder("every kind", "1")
        .tool(tool(
            "once",
            "Does something. It may send an input request first.",
        ))
        .tool(
            tool("reads", "Only reads. It may send an input request first.")
                .hints(Hints::READ_ONLY),
        )
        .build();
    let Some(address) = args.next() else {
        return server.serve_stdio().await;
    };
    let running = server.serve_http(&address).await?;
    println!("{}", running.url());
    // The process that started it kills it.
    std::future::pending().await
}

async fn run(folder: Arc<PathBuf>, ask: bool, cx: ToolContext) -> Result<Value, ToolFailure> {
    append_line(&folder, "runs")?;
    if ask {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        });
        cx.elicit_raw(form).await?;
        append_line(&folder, "answers")?;
    }
    while !folder.join("go").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(text("through"))
}

/// Appends a line to a file that the test reads.
fn append_line(folder: &Path, file: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    let mut file = options.create(true).append(true).open(folder.join(file))?;
    file.write_all(b"x\n")
}
