//! One keep-alive HTTP/1.1 connection: sends a request, reads one response. It does no more than a
//! measurement needs.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::BenchResult;

pub(crate) struct HttpConnection {
    address: SocketAddr,
    stream: TcpStream,
    /// The received part of the current response.
    buffer: Vec<u8>,
    body: Vec<u8>,
}

/// A response, valid until the next request.
pub(crate) struct HttpResponse<'a> {
    head: &'a str,
    /// The body, or the last event of a stream.
    pub(crate) text: &'a str,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> BenchResult<Self> {
        Ok(Self {
            address,
            stream: connect(address).await?,
            buffer: Vec::with_capacity(8 << 10),
            body: Vec::new(),
        })
    }

    /// Replaces the TCP connection. A server may have closed the old one while it was idle: Node
    /// and uvicorn do so after 5 s.
    pub(crate) async fn reopen(&mut self) -> BenchResult<()> {
        self.stream = connect(self.address).await?;
        Ok(())
    }

    /// Sends one request and reads its response to the end.
    pub(crate) async fn send(&mut self, request: &[u8]) -> BenchResult<HttpResponse<'_>> {
        self.buffer.clear();
        self.body.clear();
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let text = std::str::from_utf8(&self.buffer[..head])?;
        if !text.starts_with("HTTP/1.1 2") {
            // The reason is in the body, if there is one.
            let _ = timeout(Duration::from_secs(1), self.more()).await;
            let response = String::from_utf8_lossy(&self.buffer);
            return Err(format!("refused: {response}").into());
        }
        match header(text, "content-length") {
            Some(length) => {
                let length: usize = length.parse()?;
                while self.buffer.len() < head + length {
                    self.more().await?;
                }
                let (head, body) = self.buffer.split_at(head);
                HttpResponse::new(head, body)
            }
            None if header(text, "transfer-encoding") == Some("chunked") => {
                self.read_chunks(head).await?;
                HttpResponse::new(&self.buffer[..head], &self.body)
            }
            None => HttpResponse::new(&self.buffer[..head], b""),
        }
    }

    async fn read_chunks(&mut self, mut at: usize) -> BenchResult<()> {
        loop {
            let line = loop {
                if let Some(found) = find(&self.buffer[at..], b"\r\n") {
                    break at + found;
                }
                self.more().await?;
            };
            let size = std::str::from_utf8(&self.buffer[at..line])?;
            let size = usize::from_str_radix(size, 16)?;
            at = line + 2;
            while self.buffer.len() < at + size + 2 {
                self.more().await?;
            }
            self.body.extend_from_slice(&self.buffer[at..at + size]);
            at += size + 2;
            if size == 0 {
                return Ok(());
            }
        }
    }

    async fn more(&mut self) -> BenchResult<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }
}

impl<'a> HttpResponse<'a> {
    fn new(head: &'a [u8], body: &'a [u8]) -> BenchResult<Self> {
        let body = std::str::from_utf8(body)?;
        let text = body.rsplit_once("data: ").map_or(body, |(_, event)| event);
        Ok(Self {
            head: std::str::from_utf8(head)?,
            text,
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }

    /// The first string with this name, at any depth. Responses are searched, not parsed.
    pub(crate) fn string(&self, name: &str) -> BenchResult<&'a str> {
        let found = self.text.split_once(&format!("\"{name}\":\""));
        let value = found.and_then(|(_, rest)| rest.split('"').next());
        value.ok_or_else(|| format!("no {name} in {}", self.text).into())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

async fn connect(address: SocketAddr) -> BenchResult<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
