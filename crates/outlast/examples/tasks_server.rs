//! An MCP server whose tools run as durable tasks:
//! `cargo run --example tasks_server -- [--store URL] [--http ADDRESS]`.
//!
//! It speaks on standard input and output, so it can stand in any host's configuration, or over Streamable
//! HTTP, where it prints its URL. The tools are those of two well-known samples, and one that asks its
//! caller.

use std::sync::Arc;
use std::time::Duration;

use outlast::engine::Engine;
use outlast::front::{About, Front, RUNNER};
use outlast::transport::{self, http::HttpOptions};
use outlast::{TaskSupport, Tool, Tools, text};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut store = "memory:".to_owned();
    let mut http = None;
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--store", Some(url)) => store = url,
            ("--http", Some(address)) => http = Some(address.parse()?),
            _ => return Err("usage: tasks_server [--store URL] [--http ADDRESS]".into()),
        }
    }
    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let tools = [
        long_running_task(),
        long_running_analysis(),
        confirm_and_sample(),
        failing(),
    ];
    let tools = Arc::new(tools.into_iter().fold(Tools::new(), Tools::with));
    let (engine, _) = Engine::builder(store.clone())
        .runner(RUNNER, tools.clone())
        .open()
        .await?;
    let about = About {
        name: "test-tasks".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let front = Front::new(engine.clone(), tools, about);
    match http {
        None => transport::stdio::serve(front).await?,
        Some(bind) => {
            let options = HttpOptions {
                bind,
                ..HttpOptions::default()
            };
            let server = transport::http::serve(front, options).await?;
            println!("{}", server.url());
            tokio::signal::ctrl_c().await?;
            server.shutdown().await;
        }
    }
    engine.shutdown(Duration::from_secs(10)).await?;
    store.close().await?;
    Ok(())
}

/// Works for a number of seconds, and only as a task.
fn long_running_task() -> Tool {
    Tool::new(
        "long_running_task",
        "Simulates a long operation",
        |args, cx| async move {
            let duration = args.number("duration", 1.0)?.clamp(0.0, 3_600.0);
            cx.status("working on it");
            for tenth in 1..=10 {
                tokio::time::sleep(Duration::from_secs_f64(duration / 10.0)).await;
                cx.progress(f64::from(tenth), 10.0);
            }
            Ok(text(format!("Completed after {duration}s")))
        },
    )
    .input(json!({
        "type": "object",
        "properties": { "duration": { "type": "number", "description": "Duration in seconds" } },
    }))
    .task(TaskSupport::Required)
    .immediate("The operation has started.")
}

/// Works for a number of seconds, as a task or not.
fn long_running_analysis() -> Tool {
    Tool::new(
        "LongRunningAnalysis",
        "Analyses data for a while",
        |args, _| async move {
            let data = args.text("data")?.to_owned();
            let seconds = args.number("durationSeconds", 5.0)?.clamp(0.0, 3_600.0);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(text(format!("Analysis complete for: {data}")))
        },
    )
    .input(json!({
        "type": "object",
        "properties": { "data": { "type": "string" }, "durationSeconds": { "type": "number" } },
        "required": ["data"],
    }))
    .task(TaskSupport::Optional)
}

/// Asks the person, then the model.
fn confirm_and_sample() -> Tool {
    Tool::new(
        "confirm_and_sample",
        "Asks before it writes a line",
        |args, cx| async move {
            let topic = args.text("topic")?.to_owned();
            let confirmed = cx
                .elicit(json!({
                    "mode": "form",
                    "message": format!("Write about {topic}?"),
                    "requestedSchema": {
                        "type": "object",
                        "properties": { "confirm": { "type": "boolean" } },
                        "required": ["confirm"],
                    },
                }))
                .await?;
            if confirmed["action"] != "accept" || confirmed["content"]["confirm"] != true {
                return Ok(text("Nothing was written."));
            }
            let message = json!({ "role": "user", "content": { "type": "text", "text": topic } });
            let line = cx
                .sample(json!({ "messages": [message], "maxTokens": 100 }))
                .await?;
            Ok(text(line["content"]["text"].as_str().unwrap_or_default()))
        },
    )
    .input(json!({
        "type": "object",
        "properties": { "topic": { "type": "string" } },
        "required": ["topic"],
    }))
    .task(TaskSupport::Optional)
}

/// Fails.
fn failing() -> Tool {
    Tool::new("failing", "Fails after a moment", |_, _| async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Err("it broke on purpose".into())
    })
    .task(TaskSupport::Optional)
}
