//! A tool as a durable task, in one file: `cargo run --example durable_tool -- [FILE]`.
//!
//! Run it, kill it in the middle, and run it again with the same file: the tool is read-only, so
//! the task of the first run is run again and ends.

use std::time::Duration;

use outlast::client::TaskPreference;
use outlast::prelude::*;
use outlast::wire::Raw;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let file = file.unwrap_or_else(|| "durable_tool.db".into());
    let store = outlast::store::open_store(&file.parse()?, Default::default()).await?;

    let render = Tool::new("render", "draws a few pages", |args, cx| async move {
        let pages = args.number("pages", 3.0)? as u32;
        for page in 1..=pages {
            cx.status(&format!("drawing page {page} of {pages}"));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Ok(text(format!("{pages} pages drawn")))
    });
    let server = Server::builder("durable-tool", "1.0.0")
        .store(store)
        .tool(render.task(TaskSupport::Optional).hints(Hints::READ_ONLY))
        .build()
        .start()
        .await?;

    let target = Target::in_process(server.mcp().clone());
    let options = ClientOptions::default().with_era(outlast::client::Era::Legacy);
    let client = Client::connect(target, options).await?;
    for task in client.list_tasks().await? {
        let outcome = client.task_result(&task.id).await?;
        println!(
            "the last run created task {}: {}",
            task.id,
            outcome.as_str()
        );
    }

    let arguments = Raw::encode(&json!({ "pages": 4 }))?;
    let call = client.call_tool("render", Some(arguments));
    let call = call.task(TaskPreference::Require).await?;
    println!("task {} is stored", call.task().await.unwrap_or_default());
    println!("{:?}", call.outcome().await?);

    client.close().await;
    server.shutdown().await?;
    Ok(())
}
