//! HTTP/1.1 without a library: one request on one connection, and its response piece by piece.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::within;

/// A response whose head has arrived.
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    stream: BufReader<TcpStream>,
    /// The unread bytes of the current chunk.
    chunk: usize,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct SseEvent {
    /// The id, if it has one.
    pub id: Option<String>,
    /// None where the event has no data.
    pub message: Option<Value>,
}

/// Sends the bytes of a request and reads the head of the response.
pub async fn send(address: SocketAddr, request: &[u8]) -> HttpResponse {
    let mut stream = within("a connection", TcpStream::connect(address))
        .await
        .expect("the server listens");
    // A server may respond and close the connection before it has read the whole request.
    let _ = stream.write_all(request).await;
    HttpResponse::read(stream).await.expect("an response")
}

impl HttpResponse {
    /// Reads the head of a response. `None` if the connection is closed before.
    pub async fn read(stream: TcpStream) -> Option<Self> {
        within("the head of the response", Self::read_head(stream)).await
    }

    async fn read_head(stream: TcpStream) -> Option<Self> {
        let mut stream = BufReader::new(stream);
        let first = line(&mut stream).await.filter(|line| !line.is_empty())?;
        let status = first
            .split(' ')
            .nth(1)
            .expect("a status")
            .parse()
            .expect("a number");
        let mut headers = Vec::new();
        while let Some(line) = line(&mut stream).await.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').expect("a name and a value");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Self {
            status,
            headers,
            stream,
            chunk: 0,
        })
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Whether it is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The body as JSON.
    pub async fn json(self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.body().await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The body of a response that is not a stream.
    pub async fn body(mut self) -> io::Result<Vec<u8>> {
        let length = self.header("content-length").expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        let read = self.stream.read_exact(&mut body);
        within("the body of the response", read).await?;
        Ok(body)
    }

    /// The next event, or `None` at the end of the stream. Comments are skipped.
    pub async fn event(&mut self) -> Option<SseEvent> {
        within("an event", self.event_without_limit()).await
    }

    /// The same without a time limit, for a background task that reads a stream which may stay
    /// silent.
    pub(super) async fn event_without_limit(&mut self) -> Option<SseEvent> {
        loop {
            let (mut id, mut data) = (None, None);
            let mut fields = 0;
            loop {
                let line = self.chunked_line().await?;
                if line.is_empty() {
                    break;
                }
                if line.starts_with(':') {
                    continue;
                }
                fields += 1;
                let (name, value) = line.split_once(':').expect("a name and a value");
                let value = value.strip_prefix(' ').unwrap_or(value);
                match name {
                    "id" => id = Some(value.to_owned()),
                    "data" => data = Some(value.to_owned()),
                    _ => {}
                }
            }
            if fields > 0 {
                let message = data
                    .filter(|data| !data.is_empty())
                    .map(|data| serde_json::from_str(&data).expect("JSON"));
                return Some(SseEvent { id, message });
            }
        }
    }

    /// The next comment.
    pub async fn comment(&mut self) {
        let next = async {
            loop {
                if self
                    .chunked_line()
                    .await
                    .expect("the stream goes on")
                    .starts_with(':')
                {
                    return;
                }
            }
        };
        within("a comment", next).await;
    }

    /// The next event that carries a message, with its id.
    pub async fn message(&mut self) -> Option<(String, Value)> {
        loop {
            let event = self.event().await?;
            if let Some(message) = event.message {
                return Some((event.id.expect("every event has an id"), message));
            }
        }
    }

    /// The next message with that method, and its id; others are skipped.
    pub async fn next_message(&mut self, method: &str) -> (String, Value) {
        loop {
            let (id, message) = self.message().await.expect("the stream goes on");
            if message["method"] == method {
                return (id, message);
            }
        }
    }

    /// All messages up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        // The events of a modern stream have no ids.
        while let Some(event) = self.event().await {
            rest.extend(event.message);
        }
        rest
    }

    /// Closes the connection and waits until the server has closed it, too, and so has dropped the
    /// response.
    pub async fn disconnect(self) {
        let mut stream = self.stream.into_inner();
        let closed = async {
            // The server may have closed the connection already.
            let _ = stream.shutdown().await;
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        };
        within("the server closes the connection", closed).await;
    }

    /// Checks that only comments arrive for a while.
    pub async fn silence(&mut self) {
        let received = tokio::time::timeout(Duration::from_millis(200), async {
            while self
                .chunked_line()
                .await
                .expect("the stream goes on")
                .starts_with(':')
            {}
        });
        assert!(received.await.is_err());
    }

    /// A line of a chunked body, or `None` at its end.
    async fn chunked_line(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            if self.chunk == 0 {
                let size = line(&mut self.stream)
                    .await
                    .filter(|size| !size.is_empty())?;
                self.chunk = usize::from_str_radix(&size, 16).expect("a size");
                if self.chunk == 0 {
                    return None;
                }
            }
            let byte = self.stream.read_u8().await.ok()?;
            self.chunk -= 1;
            if self.chunk == 0 {
                line(&mut self.stream).await?;
            }
            match byte {
                b'\n' => return Some(String::from_utf8(text).expect("UTF-8")),
                byte => text.push(byte),
            }
        }
    }
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    match stream.read_line(&mut text).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(text.trim_end().to_owned()),
    }
}
