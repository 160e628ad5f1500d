//! An HTTP server whose responses the test writes byte by byte.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::within;

/// An HTTP server at an address of this machine. The test reads every request and writes every
/// response.
pub struct ScriptedHttpServer {
    /// The endpoint, such as `http://127.0.0.1:1234/mcp`.
    pub url: String,
    arrived: mpsc::UnboundedReceiver<ScriptedRequest>,
    early: VecDeque<ScriptedRequest>,
}

/// A request that waits for its response.
#[derive(Debug)]
pub struct ScriptedRequest {
    /// The HTTP method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if it is no JSON.
    pub body: Value,
    /// Where the response is written; the connection is used again afterwards.
    write: OwnedWriteHalf,
    again: oneshot::Sender<OwnedWriteHalf>,
}

impl ScriptedHttpServer {
    /// Listens on a free port.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, arrived) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, sender.clone()));
            }
        });
        Self {
            url: format!("http://{address}/mcp"),
            arrived,
            early: VecDeque::new(),
        }
    }

    /// The next request of that HTTP method and JSON-RPC method; others are kept.
    pub async fn next(&mut self, http: &str, rpc: &str) -> ScriptedRequest {
        let wanted = |request: &ScriptedRequest| {
            request.method == http && request.body["method"].as_str().unwrap_or("") == rpc
        };
        if let Some(at) = self.early.iter().position(wanted) {
            return self.early.remove(at).expect("it is there");
        }
        loop {
            let request = self.arrival(&format!("{http} {rpc}")).await;
            if wanted(&request) {
                return request;
            }
            self.early.push_back(request);
        }
    }

    /// The next request, whichever it is.
    pub async fn any(&mut self) -> ScriptedRequest {
        match self.early.pop_front() {
            Some(request) => request,
            None => self.arrival("a request").await,
        }
    }

    async fn arrival(&mut self, what: &str) -> ScriptedRequest {
        let arrived = within(what, self.arrived.recv()).await;
        arrived.expect("the listener never ends")
    }

    /// Responds to `initialize` as a server with V1 tasks, in a session of that id. Returns the
    /// request for the general stream, and the session ids that `initialize` and
    /// `notifications/initialized` named.
    pub async fn welcome(&mut self, session: Option<&str>) -> (ScriptedRequest, Vec<String>) {
        let hello = self.next("POST", "initialize").await;
        let mut seen = vec![hello.header("mcp-session-id").to_owned()];
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "tasks": tasks },
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        let header = session.map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        let body = hello.response(result);
        hello.json(200, &header.unwrap_or_default(), &body).await;
        let initialized = self.next("POST", "notifications/initialized").await;
        seen.push(initialized.header("mcp-session-id").to_owned());
        initialized.plain(202).await;
        (self.next("GET", "").await, seen)
    }
}

impl ScriptedRequest {
    /// The value of a header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body of a response with this result.
    pub fn response(&self, result: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }

    /// Responds with this result.
    pub async fn reply(self, result: Value) {
        let body = self.response(result);
        self.json(200, "", &body).await;
    }

    /// Responds with JSON. Each line of `headers` ends with CR and LF.
    pub async fn json(self, status: u16, headers: &str, body: &str) {
        let response = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(&response).await;
    }

    /// Responds with a status and no body.
    pub async fn plain(self, status: u16) {
        self.raw(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"))
            .await;
    }

    /// Responds with these bytes.
    pub async fn raw(mut self, response: &str) {
        let written = self.write.write_all(response.as_bytes()).await;
        written.expect("the client takes the response");
        let _ = self.again.send(self.write);
    }

    /// Begins a stream of events, which lasts until it is dropped.
    pub async fn stream(mut self) -> EventStream {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let written = self.write.write_all(head.as_bytes()).await;
        written.expect("the client takes the response");
        EventStream(self.write)
    }
}

/// A stream of events.
pub struct EventStream(OwnedWriteHalf);

impl EventStream {
    /// Sends these bytes.
    pub async fn send(&mut self, events: &str) {
        let written = self.0.write_all(events.as_bytes()).await;
        written.expect("the client takes the events");
    }

    /// Sends these bytes; whether the client still takes them, as far as that can be seen.
    pub async fn try_send(&mut self, events: &str) -> bool {
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.0.write_all(events.as_bytes()).await.is_ok()
    }
}

async fn serve(stream: TcpStream, sender: mpsc::UnboundedSender<ScriptedRequest>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some((method, path, headers, body)) = head_and_body(&mut read).await {
        let (again, answered) = oneshot::channel();
        let request = ScriptedRequest {
            method,
            path,
            headers,
            body,
            write,
            again,
        };
        if sender.send(request).is_err() {
            return;
        }
        match answered.await {
            Ok(back) => write = back,
            Err(_) => return,
        }
    }
}

async fn head_and_body(
    read: &mut BufReader<OwnedReadHalf>,
) -> Option<(String, String, BTreeMap<String, String>, Value)> {
    let mut line = String::new();
    let length = read.read_line(&mut line).await.ok()?;
    if length == 0 {
        return None;
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some((method, path, headers, body))
}
