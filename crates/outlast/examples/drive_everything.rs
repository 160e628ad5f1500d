//! Drives the tasks of `@modelcontextprotocol/server-everything`, and hosts tasks for it.
//!
//! `cargo run --example drive_everything -- URL` or `… -- COMMAND ARGS`. Part of `cargo xtask
//! peers`.

#[path = "handlers/accept_all.rs"]
mod accept_all;

use std::sync::Arc;

use accept_all::{AcceptAll, SAMPLED};
use outlast::client::{Client, ClientOptions, ReceiverOptions, Target};
use outlast::task::Outcome;
use outlast::transport::child::ChildOptions;
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::{Raw, Status};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let target = match args.as_slice() {
        [url] if url.starts_with("http") => Target::http(HttpClientOptions::new(url)),
        [program, args @ ..] => Target::child(ChildOptions::new(program).args(args)),
        [] => return Err("which server? give a URL or a command".into()),
    };
    let options = ClientOptions::default()
        .with_handler(Arc::new(AcceptAll))
        .with_receiver_tasks(ReceiverOptions::default());
    let client = Client::connect(target, options).await?;
    let server = client.server().await?;
    println!("{} {:?}", server.name, server.generation);
    client.ping().await?;
    let tides = json!({ "topic": "tides" });
    follow(&client, "simulate-research-query", tides, "tides").await?;
    let unclear = json!({ "topic": "tides", "ambiguous": true });
    follow(&client, "simulate-research-query", unclear, "technical").await?;
    // The server creates tasks at the client, polls them and fetches their results.
    let prompt = json!({ "prompt": "Hi", "maxTokens": 10 });
    follow(&client, "trigger-sampling-request-async", prompt, SAMPLED).await?;
    follow(
        &client,
        "trigger-elicitation-request-async",
        json!({}),
        "COMPLETED",
    )
    .await?;
    let tasks = client.list_tasks().await?;
    let completed = tasks.iter().filter(|task| task.status == Status::Completed);
    match completed.count() {
        2 => println!("both tasks are listed"),
        other => return Err(format!("{other} completed tasks are listed instead of 2").into()),
    }
    let endless = json!({ "topic": "nothing" });
    let call = client
        .call_tool("simulate-research-query", Some(Raw::encode(&endless)?))
        .await?;
    call.task().await.ok_or("no task was made")?;
    call.cancel().await?;
    match call.outcome().await? {
        Outcome::Cancelled => println!("a task was cancelled"),
        other => return Err(format!("{other:?} instead of a cancellation").into()),
    }
    client.close().await;
    Ok(())
}

/// Calls a tool, prints its status, and checks that its result contains `says`.
async fn follow(client: &Client, name: &str, arguments: Value, says: &str) -> Result<(), Failure> {
    println!("{name} {arguments}");
    let arguments = Raw::encode(&arguments)?;
    let call = client.call_tool(name, Some(arguments)).await?;
    let mut updates = call.updates();
    let showing = tokio::spawn(async move {
        while let Some(view) = updates.next().await {
            if let Some(task) = view.task {
                println!("  {} {}", task.status, task.message.unwrap_or_default());
            }
        }
    });
    let settled = call.outcome().await;
    showing.abort();
    let outcome = settled?;
    let Outcome::Result(body) = &outcome else {
        return Err(format!("{name} has no result").into());
    };
    let text = outcome.text().unwrap_or_default();
    println!("  {}", text.lines().next().unwrap_or_default());
    if body.as_str().contains(says) {
        Ok(())
    } else {
        Err(format!("{name} does not mention {says}: {text}").into())
    }
}
