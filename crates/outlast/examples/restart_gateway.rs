//! Kills the gateway in front of a real server and restarts it: every task has its result, and the
//! response to an input request reaches the server. `cargo xtask peers` runs it with the servers in
//! `peers`.
//!
//! `cargo run --example restart_gateway -- PARTS OUTLAST URL`, where PARTS are `many` (twenty calls
//! of the tool `long`) and `ask` (one call of the tool `ask`, or of `simulate-research-query` if
//! the server has that), OUTLAST is the program and URL the server behind the gateway.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, Execution, ServerInputRequest, Target,
    TaskPreference, accept,
};
use outlast::engine::{InputKinds, InputResponse, Outcome};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::{Raw, tool};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [parts, outlast, url] = args.as_slice() else {
        return Err("give PARTS, the path of the program, and the URL of the server".into());
    };
    for part in parts.split(',') {
        let played = async {
            match part {
                "many" => many(outlast, url).await,
                "ask" => ask(outlast, url).await,
                other => Err(format!("unknown part {other}").into()),
            }
        };
        let played = tokio::time::timeout(LIMIT, played).await;
        played
            .map_err(|_| format!("{part} takes too long"))?
            .map_err(|why| format!("{part}: {why}"))?;
    }
    Ok(())
}

/// Twenty tasks end while the gateway is down.
async fn many(outlast: &str, url: &str) -> Result<(), Failure> {
    let mut gateway = Gateway::start(outlast, url).await?;
    let (client, _) = gateway.client().await?;
    let mut calls = Vec::new();
    for _ in 0..TASKS {
        calls.push(call(&client, "long").await?);
    }
    let end = Instant::now() + LONG;
    gateway.kill().await?;
    tokio::time::sleep(end.saturating_duration_since(Instant::now())).await;
    gateway.start_again().await?;
    let began = Instant::now();
    for call in calls {
        says(call, "done").await?;
    }
    let (tasks, took) = (TASKS, began.elapsed());
    println!("{tasks} results within {took:.1?} after the restart");
    if took > BAR {
        return Err(format!("the results took longer than {BAR:?}").into());
    }
    println!("ok      many tasks over a kill of the gateway");
    Ok(())
}

/// A task waits for an input response while the gateway is down.
async fn ask(outlast: &str, url: &str) -> Result<(), Failure> {
    let mut gateway = Gateway::start(outlast, url).await?;
    let (client, person) = gateway.client().await?;
    let tools = client.tools().await?;
    let researches = tools.iter().any(|info| &*info.name == RESEARCH);
    let (tool, expected) = if researches {
        (RESEARCH, "# Research Report: tides")
    } else {
        ("ask", "accept word")
    };
    let call = call(&client, tool).await?;
    person.asked.subscribe().wait_for(|asked| *asked).await?;
    gateway.kill().await?;
    gateway.start_again().await?;
    person.answers.send_replace(true);
    let began = Instant::now();
    says(call, expected).await?;
    let took = began.elapsed();
    println!("the result {took:.1?} after the input response");
    println!("ok      an input request over a kill of the gateway");
    Ok(())
}

async fn call(client: &Client, tool: &str) -> Result<Execution, Failure> {
    let arguments = if tool == RESEARCH {
        json!({ "topic": "tides", "ambiguous": true })
    } else {
        json!({})
    };
    let call = client.call_tool(tool, Some(Raw::encode(&arguments)?));
    let call = call.task(TaskPreference::Require).await?;
    call.task().await.ok_or("no task was made")?;
    Ok(call)
}

async fn says(call: Execution, expected: &str) -> Result<(), Failure> {
    match call.outcome().await? {
        Outcome::Result(result)
            if tool::first_text(result.borrow()).is_some_and(|text| text.contains(expected)) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?} instead of {expected:?}").into()),
    }
}

/// The gateway, which keeps its address and its store over a restart.
struct Gateway {
    outlast: PathBuf,
    upstream: String,
    address: String,
    folder: tempfile::TempDir,
    child: Child,
}

impl Gateway {
    async fn start(outlast: &str, upstream: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let child = spawn(outlast.as_ref(), upstream, &address, folder.path()).await?;
        // While its store opens, a gateway answers "starting".
        while !is_ready(&address).await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Self {
            outlast: outlast.into(),
            upstream: upstream.into(),
            address,
            folder,
            child,
        })
    }

    async fn kill(&mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    async fn start_again(&mut self) -> Result<(), Failure> {
        let folder = self.folder.path();
        self.child = spawn(&self.outlast, &self.upstream, &self.address, folder).await?;
        Ok(())
    }

    /// A legacy client and its handler.
    async fn client(&self) -> Result<(Client, Arc<Person>), Failure> {
        let person = Arc::new(Person::default());
        let options = ClientOptions {
            era: Era::Legacy,
            handler: person.clone(),
            ..ClientOptions::default()
        };
        let url = format!("http://{}/mcp", self.address);
        let target = Target::http(HttpClientOptions::new(url));
        Ok((Client::connect(target, options).await?, person))
    }
}

async fn spawn(
    outlast: &Path,
    upstream: &str,
    address: &str,
    folder: &Path,
) -> Result<Child, Failure> {
    let store = format!("sqlite:{}", folder.join("tasks.db").display());
    let child = Command::new(outlast)
        .args(["serve", "--no-token", "--store", &store, "--http", address])
        .args(["--url", upstream, "--log", "warn"])
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(child)
}

async fn is_ready(address: &str) -> Result<bool, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response.starts_with("HTTP/1.1 200"))
}

/// Responds to every input request once it is allowed to.
#[derive(Default)]
struct Person {
    asked: watch::Sender<bool>,
    answers: watch::Sender<bool>,
}

#[async_trait]
impl ClientHandler for Person {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        self.asked.send_replace(true);
        let _ = self.answers.subscribe().wait_for(|answers| *answers).await;
        let params = request.params.map(|params| params.as_str().to_owned());
        // server-everything accepts only one of its options.
        let word = if params.is_some_and(|params| params.contains("interpretation")) {
            json!({ "interpretation": "technical" })
        } else {
            json!({ "name": "word", "value": "word" })
        };
        accept(Some(word))
    }
}

const TASKS: usize = 20;

/// The longest time from a restart until all results are fetched. One poll interval of a young task
/// and 2 s are usual; a busy machine gets more.
const BAR: Duration = Duration::from_secs(10);

/// The duration of the tool `long`.
const LONG: Duration = Duration::from_secs(3);

/// The tool of server-everything that creates a task and sends an input request.
const RESEARCH: &str = "simulate-research-query";

/// The time limit of a part.
const LIMIT: Duration = Duration::from_secs(90);
