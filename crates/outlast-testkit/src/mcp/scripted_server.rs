//! A server on a pipe whose messages the test writes.

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Line;

/// A server whose messages the test writes.
pub struct ScriptedServer(Line);

impl ScriptedServer {
    /// A server at this end of a pipe.
    pub fn new(line: Line) -> Self {
        Self(line)
    }

    /// Responds to `initialize` with a version and capabilities, and returns the request.
    pub async fn welcome(&mut self, version: &str, capabilities: Value) -> Value {
        let hello = self.expect_request("initialize").await;
        let result = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        self.reply(&hello, result).await;
        self.next_message("notifications/initialized").await;
        hello
    }

    /// Responds to `tools/list` with tools of these names and this support for tasks.
    pub async fn list(&mut self, tools: &[(&str, &str)]) {
        let list = self.expect_request("tools/list").await;
        let tool = |(name, support): &(&str, &str)| {
            json!({
                "name": name,
                "inputSchema": { "type": "object" },
                "execution": { "taskSupport": support },
            })
        };
        let tools: Vec<_> = tools.iter().map(tool).collect();
        self.reply(&list, json!({ "tools": tools })).await;
    }

    /// The next request, whichever it is.
    pub async fn next_request(&mut self) -> Value {
        self.find(|message| message.get("method").is_some() && message.get("id").is_some())
            .await
    }

    /// The next notification with that method.
    pub async fn next_message(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method && message.get("id").is_none())
            .await
    }

    /// Responds to a request with a result.
    pub async fn reply(&mut self, request: &Value, result: Value) {
        self.0.respond(&request["id"], result).await;
    }

    /// Responds to a request with an error.
    pub async fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        self.0.respond_error(&request["id"], code, message).await;
    }

    /// When messages with that method arrived.
    pub fn times(&self, method: &str) -> Vec<Instant> {
        let of = |(at, message): &(Instant, Value)| (message["method"] == method).then_some(*at);
        self.log().iter().filter_map(of).collect()
    }

    /// Whether a message with that method has arrived.
    pub fn has_received(&self, method: &str) -> bool {
        !self.times(method).is_empty()
    }
}

impl Deref for ScriptedServer {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.0
    }
}

impl DerefMut for ScriptedServer {
    fn deref_mut(&mut self) -> &mut Line {
        &mut self.0
    }
}
