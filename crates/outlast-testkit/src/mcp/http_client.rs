//! A client over Streamable HTTP whose messages the test writes.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::http::{self, Answer};
use crate::limit::POLL_INTERVAL;
use crate::within;

/// A client, with or without a session.
#[derive(Clone)]
pub struct HttpClient {
    /// Where the server listens.
    pub address: SocketAddr,
    /// The session, once there is one.
    pub session: Option<String>,
    /// The bearer token.
    pub token: Option<&'static str>,
}

impl HttpClient {
    /// A client without a session.
    pub fn without_session(address: SocketAddr) -> Self {
        Self {
            address,
            session: None,
            token: None,
        }
    }

    /// A client with a session of 2025-11-25.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut client = Self::without_session(address);
        client.introduce("2025-11-25").await;
        client
    }

    /// Sends `initialize` and returns its result.
    pub async fn introduce(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": { "elicitation": {}, "sampling": {} },
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let answer = self.ask("initialize", params).await;
        assert_eq!(answer.status, 200);
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let result = answer.json().await["result"].clone();
        let accepted = self
            .post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        assert_eq!(accepted.status, 202);
        result
    }

    /// Sends a request, whose answer may be anything.
    pub async fn ask(&self, method: &str, params: Value) -> Answer {
        self.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .await
    }

    /// Sends a request that is answered by JSON.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert_eq!(answer.status, 200);
        answer.json().await
    }

    /// Calls a tool.
    pub async fn tool(&self, name: &str, arguments: Value) -> Answer {
        let params = json!({
            "name": name, "arguments": arguments, "_meta": { "progressToken": "p" },
        });
        self.ask("tools/call", params).await
    }

    /// Calls a tool as a task and returns the task's id.
    pub async fn task(&self, name: &str, arguments: Value) -> String {
        let params = json!({ "name": name, "arguments": arguments, "task": {} });
        let created = self.call("tools/call", params).await;
        let id = created["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    /// What `tasks/get` says, which is always JSON.
    pub async fn status(&self, task: &str) -> Value {
        self.call("tasks/get", json!({ "taskId": task })).await
    }

    /// Asks for the result of a task.
    pub async fn result(&self, task: &str) -> Answer {
        self.ask("tasks/result", json!({ "taskId": task })).await
    }

    /// Waits until a task has this status.
    pub async fn until(&self, task: &str, status: &str) {
        // Not `eventually`: the future of an async closure cannot be spawned.
        let reached = async {
            loop {
                let now = self.status(task).await;
                if now["result"]["status"] == status {
                    return;
                }
                assert!(now.get("result").is_some(), "{now}");
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        within(status, reached).await;
    }

    /// Responds to an input request.
    pub async fn respond(&self, id: &Value, name: &str) {
        let result = json!({ "action": "accept", "content": { "name": name } });
        let accepted = self
            .post(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
        assert_eq!(accepted.status, 202);
    }

    /// Listens, in general or after an event.
    pub async fn listen(&self, last: Option<&str>) -> Answer {
        let last = last.map(|last| ("last-event-id", last));
        let answer = self.send("GET", last.as_slice(), b"").await;
        assert_eq!(answer.status, 200);
        assert!(answer.is_stream());
        answer
    }

    /// Ends the session.
    pub async fn leave(&self) -> Answer {
        self.send("DELETE", &[], b"").await
    }

    /// Sends a message.
    pub async fn post(&self, message: &Value) -> Answer {
        self.post_bytes(message.to_string().as_bytes()).await
    }

    /// Sends a body.
    pub async fn post_bytes(&self, body: &[u8]) -> Answer {
        self.send("POST", &[], body).await
    }

    /// Sends a request with these headers in place of the usual ones; one without a value is left out.
    pub async fn send(&self, method: &str, other: &[(&str, &str)], body: &[u8]) -> Answer {
        let host = self.address.to_string();
        let length = body.len().to_string();
        let mut headers = vec![
            ("host", host.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("content-length", &length),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let token = self.token.map(|token| format!("Bearer {token}"));
        headers.extend(token.as_deref().map(|token| ("authorization", token)));
        let session = self.session.as_deref();
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        headers.retain(|(name, _)| !other.iter().any(|(replaced, _)| replaced == name));
        headers.extend(other.iter().filter(|(_, value)| !value.is_empty()));
        let mut request = format!("{method} /mcp HTTP/1.1\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        http::send(self.address, &request).await
    }
}
