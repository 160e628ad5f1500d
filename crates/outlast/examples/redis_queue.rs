//! A tool whose work another process takes from a Redis queue.
//!
//! ```text
//! redis-server --port 6379
//! cargo run --example redis_queue -- server redis://127.0.0.1 127.0.0.1:8050 tasks.db
//! cargo run --example redis_queue -- worker redis://127.0.0.1
//! outlast call http://127.0.0.1:8050/mcp shout text=hello
//! ```
//!
//! The server and the worker can be killed and started again at any time. A worker takes a job by
//! moving it to the list `active`, and removes it when the server has stored the report or refuses
//! it for good. A worker that starts puts the jobs of `active` back into the queue, because a
//! killed worker left them there. If another worker still has one of them, it runs twice, which is
//! harmless: the server stores the first end and refuses the second.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast::detached::CompletionHandle;
use outlast::prelude::*;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, Direction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the worker needs.
#[derive(Serialize, Deserialize)]
struct Job {
    text: String,
    handle: CompletionHandle,
    callback: String,
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", redis, address, store] => serve(redis, address, store).await,
        ["worker", redis] => work(redis).await,
        _ => {
            Err("usage: redis_queue server REDIS ADDRESS STORE, or redis_queue worker REDIS".into())
        }
    }
}

async fn serve(redis: &str, address: &str, store: &str) -> Result<(), Failure> {
    let queue = connect(redis).await?;
    let callback: Arc<OnceLock<String>> = Arc::default();
    let url = callback.clone();
    let shout = Tool::new(
        "shout",
        "Repeats a text in capitals, elsewhere",
        move |args, cx| {
            let (mut queue, callback) = (queue.clone(), url.clone());
            async move {
                let text_to_shout = args.text("text")?.to_owned();
                let callback = callback.get().ok_or("the server starts")?.clone();
                let handle = cx.detach(MAX_QUEUE_TIME).await?;
                let job = serde_json::to_string(&Job {
                    text: text_to_shout,
                    handle,
                    callback,
                })?;
                let _: usize = queue.lpush("jobs", job).await?;
                Ok(text("queued"))
            }
        },
    );
    let store = outlast::store::open_store(&store.parse()?, Default::default()).await?;
    let server = Server::builder("redis-queue", "1.0.0")
        .tool(shout.task(TaskSupport::Required))
        .store(store)
        .callbacks("/callback")
        .build()
        .serve_http(address)
        .await?;
    let url = server.url().replace("/mcp", "/callback");
    let _ = callback.set(url);
    println!("{}", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await?;
    Ok(())
}

async fn work(redis: &str) -> Result<(), Failure> {
    // Only the loopback callbacks of this example are called, without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    let mut queue = connect(redis).await?;
    while let Some(job) = queue
        .lmove::<_, _, Option<String>>("active", "jobs", Direction::Right, Direction::Right)
        .await?
    {
        eprintln!(
            "a job of a lost worker is queued again: {} bytes",
            job.len()
        );
    }
    println!("ready");
    loop {
        let job: String = queue
            .blmove("jobs", "active", Direction::Right, Direction::Left, 0.0)
            .await?;
        if let Err(error) = run(&http, &job).await {
            eprintln!("a job is dropped: {error}");
        }
        let _: usize = queue.lrem("active", 1, &job).await?;
    }
}

/// Does the work of one job and reports it. An error is permanent: the job cannot be reported.
async fn run(http: &reqwest::Client, job: &str) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    report(http, &job, json!({ "status": "shouting" })).await?;
    report(
        http,
        &job,
        json!({ "heartbeat": { "seconds": MAX_SILENCE.as_secs() } }),
    )
    .await?;
    let result = text(job.text.to_uppercase());
    report(http, &job, json!({ "result": result })).await
}

/// Sends a report until the server has stored it, or refuses it for good.
async fn report(http: &reqwest::Client, job: &Job, report: Value) -> Result<(), Failure> {
    let body = report.to_string();
    let mut delay = FIRST_RETRY_DELAY;
    loop {
        let request = http.post(&job.callback).bearer_auth(&job.handle);
        let why = match request.body(body.clone()).send().await {
            // 409: the task has ended, by another worker or by a cancellation.
            Ok(reply) if reply.status().is_success() || reply.status() == 409 => return Ok(()),
            // The handle is no longer known, or the report is malformed.
            Ok(reply) if matches!(reply.status().as_u16(), 400 | 401) => {
                return Err(reply.text().await?.into());
            }
            Ok(reply) => reply.status().to_string(),
            Err(error) => error.to_string(),
        };
        eprintln!(
            "the report is sent again in {} ms: {why}",
            delay.as_millis()
        );
        tokio::time::sleep(delay).await;
        delay = (2 * delay).min(LAST_RETRY_DELAY);
    }
}

async fn connect(redis: &str) -> Result<MultiplexedConnection, Failure> {
    // A worker waits for a job as long as it takes.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let client = redis::Client::open(redis)?;
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    Ok(connection.await?)
}

/// How long a job may wait for a worker.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(3_600);

/// How long a worker may work before it reports again.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// The delays between two attempts to report.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
const LAST_RETRY_DELAY: Duration = Duration::from_secs(5);
