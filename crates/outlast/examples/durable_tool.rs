//! A tool as a durable task, in one file: `cargo run --example durable_tool`.
//!
//! Run it, stop it in the middle, and run it again with the same file: the task of the first run
//! gets an outcome, and a request with the same key is never run twice.

use std::sync::Arc;
use std::time::Duration;

use outlast::engine::engine::NewCall;
use outlast::engine::{Engine, InputKinds, Owner, Scope};
use outlast::tools::Hints;
use outlast::wire::Raw;
use outlast::{Tool, Tools, text};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "durable_tool.db".into());
    let store = outlast::store::open_store(&file.parse()?, Default::default()).await?;

    let render = Tool::new("render", "draws a few pages", |args, cx| async move {
        let pages = args.number("pages", 3.0)? as u32;
        for page in 1..=pages {
            cx.status(&format!("drawing page {page} of {pages}"));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Ok(text(format!("{pages} pages drawn")))
    });
    let tools = Arc::new(Tools::new().with(render.hints(Hints::READ_ONLY)));
    let builder = Engine::builder(store.clone()).runner("tools", tools.clone());
    let (engine, recovered) = builder.open().await?;
    println!("after the last run: {recovered:?}");

    let owner = Owner::principal("example");
    let params = Raw::encode(&json!({ "name": "render", "arguments": { "pages": 4 } }))?;
    let mut call = NewCall::new(
        owner.clone(),
        tools.origin("tools", "render", params, InputKinds::NONE),
    );
    call.request_key = Some("report-2026".into());
    let task = engine.create(call).await?.task().clone();
    println!("task {} is stored", task.id);

    let settled = engine.wait(&Scope::OwnedBy(owner), task.id).await?;
    println!("{:?}: {:?}", settled.summary.ending, settled.body);

    engine.shutdown(Duration::from_secs(10)).await?;
    store.close().await?;
    Ok(())
}
