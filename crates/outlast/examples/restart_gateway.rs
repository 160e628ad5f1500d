//! Kills the gateway in front of a real server and restarts it: every task has its result, and the
//! response to an input request reaches the server. `cargo xtask peers` runs it with the servers in
//! `peers`.
//!
//! `cargo run --example restart_gateway -- PARTS OUTLAST URL`, where PARTS are `many` (twenty calls
//! of the tool `long`), `commands` (two commands of OUTLAST that wait for tasks in one session at
//! the server, without a gateway), `ask` (one call of the tool `ask`, or of
//! `simulate-research-query` if the server has that) and `cut` (the same call, whose streams to the
//! server break while its input request is open), OUTLAST is the program and URL the server behind
//! the gateway.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, Execution, ServerInputRequest, Target,
    TaskPreference, accept,
};
use outlast::task::{InputKind, InputKinds, InputResponse, Outcome};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::Raw;
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
                "commands" => commands(outlast, url).await,
                "ask" => ask(outlast, url).await,
                "cut" => resume_cut_streams(outlast, url).await,
                other => Err(format!("unknown part {other}").into()),
            }
        };
        let played = tokio::time::timeout(WAIT_LIMIT, played).await;
        played
            .map_err(|_| format!("{part} takes too long"))?
            .map_err(|why| format!("{part}: {why}"))?;
    }
    Ok(())
}

/// Twenty tasks end while the gateway is down. Their results are there soon after the restart.
///
/// In every round each task must have its result. The bar for the time must be met in one round: it
/// is one poll interval and 2 s, and on a busy machine the gateway, the server and this client wait
/// longer than that for a processor, whatever they do.
async fn many(outlast: &str, url: &str) -> Result<(), Failure> {
    let mut times = Vec::new();
    for round in 1..=ROUNDS {
        let took = time_until_results(outlast, url)
            .await
            .map_err(|why| format!("round {round}: {why}"))?;
        println!("round {round}: all {TASKS} results within {took:.1?} after the restart");
        times.push(took);
    }
    if times.iter().all(|took| *took > MAX_RESUME_TIME) {
        return Err(format!(
            "in no round were the results there within {MAX_RESUME_TIME:?}: {times:.1?}"
        )
        .into());
    }
    println!("ok      many tasks over a kill of the gateway");
    Ok(())
}

/// Creates the tasks, kills the gateway, restarts it when they have ended, and returns the time
/// from the moment when it is ready until all results are fetched.
async fn time_until_results(outlast: &str, url: &str) -> Result<Duration, Failure> {
    let mut gateway = Gateway::start(outlast, url).await?;
    let (client, _) = gateway.client().await?;
    let (mut calls, mut granted) = (Vec::new(), Vec::new());
    let created = Instant::now();
    for _ in 0..TASKS {
        let call = call(&client, "long").await?;
        let task = call.status().task.ok_or("no task was made")?;
        granted.push((task.id, task.ttl_ms));
        calls.push(call);
    }
    keep_ttls(&client, &granted, created).await?;
    let end = Instant::now() + LONG_CALL;
    gateway.kill().await?;
    tokio::time::sleep(end.saturating_duration_since(Instant::now())).await;
    gateway.start_again().await?;
    let began = Instant::now();
    for call in calls {
        check_result(call, "done").await?;
    }
    let took = began.elapsed();
    keep_ttls(&client, &granted, created).await?;
    Ok(took)
}

/// Checks that every task has the TTL that its creation granted. FastMCP 3 sends another one. An
/// ended task has that TTL from its end on.
async fn keep_ttls(
    client: &Client,
    granted: &[(String, Option<u64>)],
    created: Instant,
) -> Result<(), Failure> {
    for (id, granted_ms) in granted {
        let now_ms = client.get_task(id).await?.ttl_ms;
        let age_ms = created.elapsed().as_millis() as u64;
        let is_kept = granted_ms
            .zip(now_ms)
            .is_some_and(|(granted, now)| (granted..=granted + age_ms).contains(&now));
        if !is_kept {
            return Err(
                format!("task {id} was granted {granted_ms:?} ms and now has {now_ms:?}").into(),
            );
        }
    }
    Ok(())
}

/// Two commands wait for the results of two tasks in the session that their data directory has.
async fn commands(outlast: &str, url: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let run = async |words: &[&str]| -> Result<String, Failure> {
        let mut command = Command::new(outlast);
        command.args(words).env("XDG_DATA_HOME", folder.path());
        let output = command
            .env_remove("OUTLAST_TOKEN")
            .kill_on_drop(true)
            .stdin(std::process::Stdio::null())
            .output()
            .await?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{words:?} ended with {}: {why}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let detach = ["call", "--as", "v1", "--detach", url, "long"];
    let (first, second) = (run(&detach).await?, run(&detach).await?);
    let result = |id| ["tasks", "result", "--as", "v1", url, id];
    let words = (result(&first), result(&second));
    let results = tokio::try_join!(run(&words.0), run(&words.1))?;
    for printed in [results.0, results.1] {
        let result: serde_json::Value = serde_json::from_str(&printed)?;
        if result["content"][0]["text"] != "done" {
            return Err(format!("a command printed {printed}").into());
        }
    }
    println!("ok      two commands in one session");
    Ok(())
}

/// A task waits for an input response while the gateway is down.
async fn ask(outlast: &str, url: &str) -> Result<(), Failure> {
    let mut gateway = Gateway::start(outlast, url).await?;
    let (client, handler) = gateway.client().await?;
    let tools = client.tools().await?;
    let researches = tools.iter().any(|info| &*info.name == RESEARCH);
    let (tool, expected) = if researches {
        (RESEARCH, "# Research Report: tides")
    } else {
        ("ask", "accept word")
    };
    let call = call(&client, tool).await?;
    handler
        .request_count
        .subscribe()
        .wait_for(|request_count| *request_count > 0)
        .await?;
    gateway.kill().await?;
    gateway.start_again().await?;
    handler.answers.send_replace(true);
    let began = Instant::now();
    check_result(call, expected).await?;
    let took = began.elapsed();
    println!("the result {took:.1?} after the input response");
    println!("ok      an input request over a kill of the gateway");
    Ok(())
}

/// All streams to the server break while its input request is open. The server sends the request
/// again on the resumed stream; the client gets it once, and its response reaches the server.
async fn resume_cut_streams(outlast: &str, url: &str) -> Result<(), Failure> {
    let proxy = Proxy::start(url).await?;
    let gateway = Gateway::start(outlast, &proxy.url).await?;
    let (client, handler) = gateway.client().await?;
    let call = call(&client, RESEARCH).await?;
    handler
        .request_count
        .subscribe()
        .wait_for(|request_count| *request_count > 0)
        .await?;
    for _ in 0..CUT_COUNT {
        proxy.break_connections().await?;
    }
    handler.answers.send_replace(true);
    check_result(call, "# Research Report: tides").await?;
    let request_count = *handler.request_count.borrow();
    if request_count != 1 {
        return Err(format!("the client got the input request {request_count} times").into());
    }
    println!("ok      an input request over broken streams");
    Ok(())
}

/// Passes bytes on to the server, and breaks all connections on command.
struct Proxy {
    url: String,
    /// How often the connections were broken.
    cuts: watch::Sender<usize>,
    /// How many streams were opened with GET: a client resumes and opens streams with it.
    streams: watch::Sender<usize>,
}

impl Proxy {
    async fn start(url: &str) -> Result<Self, Failure> {
        let (_, rest) = url.split_once("://").ok_or("the URL has no scheme")?;
        let (server, path) = rest.split_once('/').ok_or("the URL has no path")?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let proxy = Self {
            url: format!("http://{}/{path}", listener.local_addr()?),
            cuts: watch::Sender::default(),
            streams: watch::Sender::default(),
        };
        let (server, cuts) = (server.to_owned(), proxy.cuts.clone());
        let streams = proxy.streams.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, streams) = (server.clone(), streams.clone());
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = forward(client, &server, &streams) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Ok(proxy)
    }

    /// Breaks all connections and waits until the client has opened a stream again.
    async fn break_connections(&self) -> Result<(), Failure> {
        let mut streams = self.streams.subscribe();
        let before = *streams.borrow_and_update();
        self.cuts.send_modify(|cuts| *cuts += 1);
        streams.wait_for(|now| *now > before).await?;
        Ok(())
    }
}

/// Passes bytes on until one side closes.
async fn forward(
    client: TcpStream,
    server: &str,
    streams: &watch::Sender<usize>,
) -> std::io::Result<()> {
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let (mut from_client, mut to_client) = client.into_split();
    let requests = async {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = from_client.read(&mut bytes).await?;
            if read == 0 {
                return Ok(());
            }
            // A client sends the next request after the response to the last one, so the head of a
            // request begins a read.
            if bytes[..read].starts_with(b"GET ") {
                streams.send_modify(|streams| *streams += 1);
            }
            to_server.write_all(&bytes[..read]).await?;
        }
    };
    tokio::select! {
        done = requests => done,
        done = tokio::io::copy(&mut from_server, &mut to_client) => done.map(drop),
    }
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

async fn check_result(call: Execution, expected: &str) -> Result<(), Failure> {
    match call.outcome().await? {
        outcome @ Outcome::Result(_)
            if outcome.text().is_some_and(|text| text.contains(expected)) =>
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
    async fn client(&self) -> Result<(Client, Arc<WaitingHandler>), Failure> {
        let handler = Arc::new(WaitingHandler::default());
        let options = ClientOptions::default()
            .with_era(Era::Legacy)
            .with_handler(handler.clone());
        let url = format!("http://{}/mcp", self.address);
        let target = Target::http(HttpClientOptions::new(url));
        Ok((Client::connect(target, options).await?, handler))
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
    // While its store opens, a gateway answers "starting".
    while !is_ready(address).await.unwrap_or(false) {
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

/// Responds to elicitations once it is allowed to.
#[derive(Default)]
struct WaitingHandler {
    /// How many elicitations have arrived.
    request_count: watch::Sender<usize>,
    answers: watch::Sender<bool>,
}

#[async_trait]
impl ClientHandler for WaitingHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        if request.kind == InputKind::Roots {
            return InputResponse::Result(Raw::from(&json!({ "roots": [] })));
        }
        self.request_count
            .send_modify(|request_count| *request_count += 1);
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

/// How often the streams break.
const CUT_COUNT: usize = 3;

/// The longest time from a restart until all results are fetched: one poll interval of a young task
/// and 2 s.
const MAX_RESUME_TIME: Duration = Duration::from_secs(3);

/// How often the gateway is killed in front of many tasks.
const ROUNDS: usize = 3;

/// The duration of the tool `long`.
const LONG_CALL: Duration = Duration::from_secs(3);

/// The tool of server-everything that creates a task and sends an input request.
const RESEARCH: &str = "simulate-research-query";

/// The time limit of a part.
const WAIT_LIMIT: Duration = Duration::from_secs(180);
