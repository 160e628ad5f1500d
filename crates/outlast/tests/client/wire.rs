//! An HTTP server that the test plays by hand: it sees every byte of a request and writes every byte of the answer.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// A server at an address of this machine.
pub(crate) struct Wire {
    pub(crate) url: String,
    arrived: mpsc::UnboundedReceiver<Request>,
    early: VecDeque<Request>,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// Where its answer is written; the connection is used again afterwards.
    write: OwnedWriteHalf,
    again: oneshot::Sender<OwnedWriteHalf>,
}

impl Wire {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (tell, arrived) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tell.clone()));
            }
        });
        Self {
            url,
            arrived,
            early: VecDeque::new(),
        }
    }

    /// The next request of that HTTP method and JSON-RPC method; others are kept.
    pub(crate) async fn next(&mut self, http: &str, rpc: &str) -> Request {
        let wanted = |request: &Request| {
            request.method == http && request.body["method"].as_str().unwrap_or("") == rpc
        };
        if let Some(at) = self.early.iter().position(wanted) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let request = self.arrived.recv().await.unwrap();
            if wanted(&request) {
                return request;
            }
            self.early.push_back(request);
        }
    }

    /// The next request, whichever it is.
    pub(crate) async fn any(&mut self) -> Request {
        match self.early.pop_front() {
            Some(request) => request,
            None => self.arrived.recv().await.unwrap(),
        }
    }

    /// Plays the handshake; the session is called `s1` if that is wanted. Returns the request for the listening stream.
    pub(crate) async fn welcome(&mut self, session: Option<&str>) -> (Request, Vec<String>) {
        let hello = self.next("POST", "initialize").await;
        let mut seen = vec![
            hello
                .headers
                .get("mcp-session-id")
                .cloned()
                .unwrap_or_default(),
        ];
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": crate::stage::capabilities(),
            "serverInfo": { "name": "wire", "version": "1" },
        });
        let header = session
            .map(|id| format!("Mcp-Session-Id: {id}\r\n"))
            .unwrap_or_default();
        let body = hello.answer(result);
        hello.json(200, &header, &body).await;
        let initialized = self.next("POST", "notifications/initialized").await;
        seen.push(
            initialized
                .headers
                .get("mcp-session-id")
                .cloned()
                .unwrap_or_default(),
        );
        initialized.plain(202).await;
        (self.next("GET", "").await, seen)
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body of an answer with this result.
    pub(crate) fn answer(&self, result: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }

    pub(crate) async fn json(self, status: u16, headers: &str, body: &str) {
        let head = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(&head).await;
    }

    pub(crate) async fn plain(self, status: u16) {
        self.raw(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"))
            .await;
    }

    pub(crate) async fn raw(mut self, answer: &str) {
        self.write.write_all(answer.as_bytes()).await.unwrap();
        let _ = self.again.send(self.write);
    }

    /// Begins a stream of events, which lasts until it is dropped.
    pub(crate) async fn stream(mut self) -> Stream {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        self.write.write_all(head.as_bytes()).await.unwrap();
        Stream(self.write)
    }
}

/// A stream of events.
pub(crate) struct Stream(OwnedWriteHalf);

impl Stream {
    pub(crate) async fn send(&mut self, events: &str) {
        self.0.write_all(events.as_bytes()).await.unwrap();
    }

    /// The same; whether the other end still takes it, as far as that can be seen.
    pub(crate) async fn try_send(&mut self, events: &str) -> bool {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        self.0.write_all(events.as_bytes()).await.is_ok()
    }
}

async fn serve(stream: TcpStream, tell: mpsc::UnboundedSender<Request>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some((method, path, headers, body)) = head_and_body(&mut read).await {
        let (again, answered) = oneshot::channel();
        let request = Request {
            method,
            path,
            headers,
            body,
            write,
            again,
        };
        if tell.send(request).is_err() {
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
    read.read_line(&mut line)
        .await
        .ok()
        .filter(|read| *read > 0)?;
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
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some((method, path, headers, body))
}
