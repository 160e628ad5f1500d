//! A scripted HTTP client with one connection for each request.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client with a session.
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    session: Option<String>,
}

impl Caller {
    /// An initialized client of 2025-11-25.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut caller = Self {
            address,
            session: None,
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let (head, answer) = caller.post("initialize", params).await;
        assert!(answer.get("result").is_some(), "{answer}");
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.trim().to_owned())
        });
        caller.session = Some(session.expect("a session"));
        caller
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.post(method, params).await.1
    }

    /// Calls a tool as a task and returns the task.
    pub(crate) async fn task(&self, tool: &str) -> String {
        let created = self
            .call("tools/call", json!({ "name": tool, "task": {} }))
            .await;
        let task = created["result"]["task"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    /// A request of 2026-07-28 from a client with tasks and form elicitation.
    pub(crate) async fn modern(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "2" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": { "form": {} },
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        let name = params["name"].as_str().or(params["taskId"].as_str());
        let headers = format!(
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\nmcp-name: {}\r\n",
            name.unwrap(),
        );
        self.send(&headers, method, params).await.1
    }

    async fn post(&self, method: &str, params: Value) -> (String, Value) {
        let session = self.session.as_deref();
        let session = session.map_or(String::new(), |id| format!("mcp-session-id: {id}\r\n"));
        let headers = format!("mcp-protocol-version: 2025-11-25\r\n{session}");
        self.send(&headers, method, params).await
    }

    /// The head of the response, and its last message.
    async fn send(&self, headers: &str, method: &str, params: Value) -> (String, Value) {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\n{headers}connection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut messages = body.lines().filter_map(|line| {
            let line = line.strip_prefix("data:").unwrap_or(line).trim();
            let message: Value = serde_json::from_str(line).ok()?;
            message.get("id").is_some().then_some(message)
        });
        let last = messages.next_back();
        (head.to_owned(), last.unwrap_or_else(|| panic!("{answer}")))
    }
}
