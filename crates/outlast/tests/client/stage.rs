//! A server that the test plays by hand, at the other end of a pipe.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::back::{Client, ClientOptions, Era, Execution, Target};
use outlast::engine::{Accepts, Outcome};
use outlast::transport::duplex;
use outlast::wire::Raw;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server whose words are the test's.
pub(crate) struct Server {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    early: VecDeque<Value>,
    /// Everything it has read, and when.
    pub(crate) log: Vec<(Instant, Value)>,
}

/// Options for a client of the legacy era, which everything here is about.
pub(crate) fn options() -> ClientOptions {
    ClientOptions {
        era: Era::Legacy,
        ..ClientOptions::default()
    }
}

/// A client and the server it is connected to.
pub(crate) async fn connected() -> (Client, Server) {
    connected_with(options(), capabilities()).await
}

/// The same with a call of the tool `slow` on its way.
pub(crate) async fn calling() -> (Client, Server, JoinHandle<Execution>) {
    let (client, server) = connected().await;
    let call = client.call_tool("slow", None);
    let call = tokio::spawn(async move { call.await.unwrap() });
    (client, server, call)
}

/// The same with options, and with what the server declares.
pub(crate) async fn connected_with(
    options: ClientOptions,
    capabilities: Value,
) -> (Client, Server) {
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities).await;
    (connecting.await.unwrap().unwrap(), server)
}

/// A place to connect to, and the servers that are connected to there, one after the other.
pub(crate) fn target() -> (Target, Servers) {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let target = Target::other("test", move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = Server {
            write,
            lines: BufReader::new(read).lines(),
            early: VecDeque::new(),
            log: Vec::new(),
        };
        let _ = tell.send(server);
        let (read, write) = tokio::io::split(ours);
        Ok(duplex::over(read, write))
    });
    (target, Servers(told))
}

pub(crate) struct Servers(tokio::sync::mpsc::UnboundedReceiver<Server>);

impl Servers {
    pub(crate) async fn next(&mut self) -> Server {
        self.0.recv().await.expect("somebody connects")
    }
}

/// What a server declares that does all of V1 tasks.
pub(crate) fn capabilities() -> Value {
    json!({ "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } })
}

impl Server {
    pub(crate) async fn welcome(&mut self, version: &str, capabilities: Value) -> Value {
        let hello = self.asked("initialize").await;
        let result = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        self.reply(&hello, result).await;
        self.told("notifications/initialized").await;
        hello
    }

    /// Answers `tools/list` with tools of these names and this support.
    pub(crate) async fn list(&mut self, tools: &[(&str, &str)]) {
        let list = self.asked("tools/list").await;
        let tool = |(name, support): &(&str, &str)| json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": support } });
        let tools: Vec<_> = tools.iter().map(tool).collect();
        self.reply(&list, json!({ "tools": tools })).await;
    }

    /// Answers the list and then the call with a task that looks like this.
    pub(crate) async fn make_task(&mut self, status: &str, interval: u64) -> Value {
        self.list(&[("slow", "optional")]).await;
        let call = self.asked("tools/call").await;
        self.reply(&call, json!({ "task": task(status, interval) }))
            .await;
        call
    }

    /// The next request of that method; what else arrives is kept.
    pub(crate) async fn asked(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method && message.get("id").is_some())
            .await
    }

    /// The next request, whichever it is.
    pub(crate) async fn next_request(&mut self) -> Value {
        self.find(|message| message.get("method").is_some() && message.get("id").is_some())
            .await
    }

    /// The next notification of that method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method && message.get("id").is_none())
            .await
    }

    /// The answer to a request of ours.
    pub(crate) async fn answer(&mut self, id: &str) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        let id = &request["id"];
        self.write(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        let id = &request["id"];
        self.write(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await;
    }

    pub(crate) async fn ask(&mut self, id: &str, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    pub(crate) async fn write(&mut self, message: Value) {
        self.write_raw(message.to_string().as_bytes()).await;
    }

    pub(crate) async fn write_raw(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    /// Nothing arrives for so long.
    pub(crate) async fn silence(&mut self, time: Duration) {
        assert!(self.early.is_empty(), "{:?}", self.early);
        let heard = tokio::time::timeout(time, self.lines.next_line()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// Waits until the other end has closed the pipe; what it still said.
    pub(crate) async fn gone(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Ok(Some(line)) = self.lines.next_line().await {
            said.push(line);
        }
        said
    }

    /// When requests of that method arrived.
    pub(crate) fn times(&self, method: &str) -> Vec<Instant> {
        let of = |(at, message): &(Instant, Value)| (message["method"] == method).then_some(*at);
        self.log.iter().filter_map(of).collect()
    }

    /// Whether a message of that method has arrived.
    pub(crate) fn heard(&self, method: &str) -> bool {
        !self.times(method).is_empty()
    }

    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let message = self.read().await;
            if wanted(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(100_000), self.lines.next_line());
        let line = line
            .await
            .expect("a message")
            .unwrap()
            .expect("an open pipe");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.log.push((Instant::now(), message.clone()));
        message
    }
}

/// Lets both sides catch up: whatever was said before has been heard.
pub(crate) trait Settles {
    async fn ping_answered_by(&self, server: &mut Server);
}

impl Settles for Client {
    async fn ping_answered_by(&self, server: &mut Server) {
        let client = self.clone();
        let pinging = tokio::spawn(async move { client.ping().await });
        let ping = server.asked("ping").await;
        server.reply(&ping, json!({})).await;
        pinging.await.unwrap().unwrap();
    }
}

/// A task as the server shows it.
pub(crate) fn task(status: &str, interval: u64) -> Value {
    json!({
        "taskId": "t1",
        "status": status,
        "createdAt": "2026-01-10T08:00:00Z",
        "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttl": 60_000,
        "pollInterval": interval,
    })
}

/// A tool result with one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The text of a result.
pub(crate) fn said(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result(body) => outlast::wire::tool::first_text(body.borrow()).unwrap_or_default(),
        other => panic!("{other:?} is no result"),
    }
}

pub(crate) fn raw(value: Value) -> Raw {
    Raw::encode(&value).unwrap()
}

/// An inbox for everything, and options with it.
pub(crate) fn with_inbox() -> (outlast::back::Inbox, ClientOptions) {
    let inbox = outlast::back::Inbox::new(Accepts::all());
    let options = ClientOptions {
        host: Arc::new(inbox.clone()),
        ..options()
    };
    (inbox, options)
}

/// Collects what a callback hears.
pub(crate) fn collector() -> (
    Arc<Mutex<Vec<String>>>,
    impl Fn(&str) + Send + Sync + 'static,
) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let tell = heard.clone();
    (heard, move |line: &str| {
        tell.lock().unwrap().push(line.to_owned());
    })
}
