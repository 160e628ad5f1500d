//! Drives the tasks of a server that uses another library, and hosts tasks for it. `cargo xtask
//! peers` runs it with the servers in `peers`.
//!
//! `cargo run --example drive_tasks -- PARTS URL` or `… -- PARTS COMMAND ARGS`, where PARTS names
//! what is expected of the server: `slow,must,fail,crash,ask,retry,sample,host,list,endless`.

#[path = "handlers/accept_all.rs"]
mod accept_all;

use std::sync::Arc;
use std::time::Duration;

use accept_all::{AcceptAll, SAMPLED};
use outlast::client::{Client, ClientOptions, Execution, ReceiverOptions, Target, TaskPreference};
use outlast::task::Outcome;
use outlast::transport::child::ChildOptions;
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::Raw;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (parts, target) = match args.as_slice() {
        [parts, url] if url.starts_with("http") => {
            (parts, Target::http(HttpClientOptions::new(url)))
        }
        [parts, program, args @ ..] => {
            let child = ChildOptions::new(program).args(args);
            (parts, Target::child(child))
        }
        _ => return Err("what and which server? give PARTS, then a URL or a command".into()),
    };
    let options = ClientOptions::default()
        .with_handler(Arc::new(AcceptAll))
        .with_receiver_tasks(ReceiverOptions::default());
    let client = Client::connect(target, options).await?;
    let server = client.server().await?;
    println!("{} {:?}", server.name, server.generation);
    for part in parts.split(',') {
        println!("{part}");
        tokio::time::timeout(TASK_TIMEOUT, drive(&client, part))
            .await
            .map_err(|_| format!("{part} takes too long"))?
            .map_err(|why| format!("{part}: {why}"))?;
    }
    client.close().await;
    Ok(())
}

/// Drives one tool of the server to the end that it should have.
async fn drive(client: &Client, part: &str) -> Result<(), Failure> {
    match part {
        "slow" => check_result(call(client, part, TaskPreference::Require).await?, "done").await,
        // No task was requested; the tool requires one.
        "must" => {
            check_result(
                call(client, part, TaskPreference::Allow).await?,
                "done as a task",
            )
            .await
        }
        "fail" => match call(client, part, TaskPreference::Require)
            .await?
            .outcome()
            .await?
        {
            Outcome::ToolError(_, Some(why)) if why.contains("it broke") => Ok(()),
            other => Err(format!("{other:?} instead of its failure").into()),
        },
        "crash" => match call(client, part, TaskPreference::Require)
            .await?
            .outcome()
            .await?
        {
            Outcome::ToolError(..) | Outcome::Error(..) => Ok(()),
            other => Err(format!("{other:?} instead of an error").into()),
        },
        "ask" => {
            check_result(
                call(client, part, TaskPreference::Require).await?,
                "accept word",
            )
            .await
        }
        // The same input request without a task: it precedes the result, and the call is repeated.
        "retry" => {
            check_result(
                call(client, "ask", TaskPreference::Forbid).await?,
                "accept word",
            )
            .await
        }
        "sample" => check_result(call(client, part, TaskPreference::Require).await?, SAMPLED).await,
        "host" => {
            let expected = format!("{SAMPLED}, word");
            check_result(call(client, part, TaskPreference::Forbid).await?, &expected).await
        }
        "endless" => {
            let call = call(client, part, TaskPreference::Require).await?;
            call.task().await.ok_or("no task was made")?;
            call.cancel().await?;
            match call.outcome().await? {
                Outcome::Cancelled => Ok(()),
                other => Err(format!("{other:?} instead of a cancellation").into()),
            }
        }
        "list" => match client.list_tasks().await?.len() {
            0 => Err("no task is listed".into()),
            some => {
                println!("  {some} tasks are listed");
                Ok(())
            }
        },
        other => Err(format!("there is no part {other}").into()),
    }
}

async fn call(
    client: &Client,
    name: &str,
    preference: TaskPreference,
) -> Result<Execution, Failure> {
    let nothing = Raw::parse("{}".into())?;
    let call = client
        .call_tool(name, Some(nothing))
        .ttl(Duration::from_secs(60));
    Ok(call.task(preference).await?)
}

/// Checks that a call ends with a result that contains this text, and prints its status.
async fn check_result(call: Execution, expected: &str) -> Result<(), Failure> {
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
    match settled? {
        outcome @ Outcome::Result(_) => {
            let text = outcome.text().unwrap_or_default();
            println!("  {text}");
            if text.contains(expected) {
                Ok(())
            } else {
                Err(format!("{expected} is expected").into())
            }
        }
        other => Err(format!("{other:?} instead of {expected}").into()),
    }
}

/// The time limit of one part.
const TASK_TIMEOUT: Duration = Duration::from_secs(60);
