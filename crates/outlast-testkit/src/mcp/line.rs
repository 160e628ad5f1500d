//! One end of a pipe on which messages travel, one on each line. Every wait has a limit.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Lines,
    ReadHalf, WriteHalf,
};
use tokio::time::Instant;

use crate::within;

/// One end of a pipe.
pub struct Line {
    /// `None` after [`Line::close`].
    write: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    /// What arrived while something else was waited for.
    early: VecDeque<Value>,
    log: Vec<(Instant, Value)>,
}

impl Line {
    /// An end that reads and writes these.
    pub fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            write: Some(Box::new(write)),
            lines: BufReader::new(Box::new(read) as _).lines(),
            early: VecDeque::new(),
            log: Vec::new(),
        }
    }

    /// An end, and the other one for the program under test.
    pub fn pair() -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(ours);
        (Self::new(read, write), theirs)
    }

    /// An end whose other end is served by `serve`, in a task of its own.
    pub fn served_by<F>(
        serve: impl FnOnce(BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>) -> F,
    ) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (line, theirs) = Self::pair();
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(serve(BufReader::new(read), write));
        line
    }

    /// Sends a request under `id`.
    pub async fn request(&mut self, id: &Value, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Responds to the request `id` with a result.
    pub async fn respond(&mut self, id: &Value, result: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Responds to the request `id` with an error.
    pub async fn respond_error(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.write(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await;
    }

    /// Sends any message.
    pub async fn write(&mut self, message: Value) {
        self.write_raw(message.to_string().as_bytes()).await;
    }

    /// Sends any bytes as a line.
    pub async fn write_raw(&mut self, line: &[u8]) {
        let write = self.write.as_mut().expect("the pipe is not closed");
        let written = async {
            write.write_all(line).await?;
            write.write_all(b"\n").await?;
            write.flush().await
        };
        within("a line is written", written)
            .await
            .expect("the other end reads");
    }

    /// The first message that is `wanted`; what else arrives before it is kept.
    pub async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at).expect("it is at this place");
        }
        loop {
            let message = self.read().await;
            if wanted(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The next request or notification with that method.
    pub async fn next_message(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    /// The next request with that method.
    pub async fn expect_request(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method && message.get("id").is_some())
            .await
    }

    /// The response to the request `id`.
    pub async fn response_to(&mut self, id: &Value) -> Value {
        self.find(|message| message["id"] == *id && message.get("method").is_none())
            .await
    }

    /// The next message, whichever it is.
    pub async fn next(&mut self) -> Value {
        match self.early.pop_front() {
            Some(message) => message,
            None => self.read().await,
        }
    }

    /// The oldest message that was kept while something else was waited for.
    pub fn early(&mut self) -> Option<Value> {
        self.early.pop_front()
    }

    /// Whether a message with that method was kept.
    pub fn has_early(&self, method: &str) -> bool {
        self.early.iter().any(|message| message["method"] == method)
    }

    /// Everything that was read, and when.
    pub fn log(&self) -> &[(Instant, Value)] {
        &self.log
    }

    /// Checks that nothing arrives for so long. What was kept before does not count.
    pub async fn silence(&mut self, time: Duration) {
        let line = tokio::time::timeout(time, self.lines.next_line()).await;
        assert!(line.is_err(), "{line:?}");
    }

    /// Sends nothing more, and returns what arrives until the other end closes, with what was kept
    /// before.
    pub async fn close(&mut self) -> Vec<Value> {
        if let Some(mut write) = self.write.take() {
            // The other end may be gone already.
            let _ = write.shutdown().await;
        }
        let mut rest = Vec::from(std::mem::take(&mut self.early));
        rest.extend(self.until_closed().await);
        rest
    }

    /// What arrives until the other end closes.
    pub async fn until_closed(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Ok(Some(line)) = within("the pipe is closed", self.lines.next_line()).await {
            rest.push(parsed(&line));
        }
        rest
    }

    async fn read(&mut self) -> Value {
        let line = within("a message", self.lines.next_line()).await;
        let line = line.expect("the pipe can be read");
        let message = parsed(&line.expect("the pipe is open"));
        self.log.push((Instant::now(), message.clone()));
        message
    }
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}
