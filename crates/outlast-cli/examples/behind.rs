//! A server without tasks on standard input and output: the upstream of the gateway tests.

use std::time::Duration;

use outlast::tools::{Arguments, Hints, ToolFailure};
use outlast::{Server, ServerError, Tool, text};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), ServerError> {
    let echo = Tool::new("echo", "Says it again.", |args, _| async move {
        Ok(text(args.text("say")?))
    })
    .input(json!({ "type": "object", "properties": { "say": { "type": "string" } } }));
    let takes = json!({
        "type": "object",
        "properties": { "ms": { "type": "integer" }, "file": { "type": "string" } },
    });
    let wait = Tool::new(
        "wait",
        "Waits, and may have done something.",
        |args, _| async move {
            pause(&args).await?;
            Ok(text("waited"))
        },
    )
    .input(takes.clone());
    let read = Tool::new("read", "Waits, and only reads.", |args, _| async move {
        pause(&args).await?;
        Ok(text("read"))
    })
    .input(takes)
    .hints(Hints::READ_ONLY);
    let ask = Tool::new("ask", "Asks who is there.", |_, cx| async move {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
        });
        let answer = cx.elicit_raw(form).await?;
        Ok(text(format!(
            "Hello, {}!",
            answer["content"]["name"].as_str().unwrap_or("stranger")
        )))
    });
    let crash = Tool::new("crash", "Ends the server.", |_, _| async move {
        std::process::exit(7);
    });
    let tools = [echo, wait, read, ask, crash];
    let server = Server::builder("behind", "1").tools(tools).build();
    server.serve_stdio().await
}

/// Waits for the time of the argument `ms`, and until the file of the argument `file` exists.
async fn pause(args: &Arguments) -> Result<(), ToolFailure> {
    tokio::time::sleep(Duration::from_millis(args.number("ms", 0.0)? as u64)).await;
    if args.get("file").is_some() {
        let file = args.text("file")?;
        while !std::path::Path::new(file).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
