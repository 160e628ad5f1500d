//! A client over Streamable HTTP whose messages the test writes.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::http::{self, HttpResponse};
use super::http_request::{
    MODERN, message_headers, modern_headers, request_bytes, with_modern_meta,
};
use crate::limit::POLL_INTERVAL;
use crate::within;

/// A client, with or without a session. A modern one repeats the method and the name of a message
/// in headers (V2-HDR-1).
#[derive(Clone)]
pub struct HttpClient {
    /// Where the server listens.
    pub address: SocketAddr,
    /// The session, once there is one.
    pub session: Option<String>,
    /// The bearer token.
    pub token: Option<&'static str>,
    /// The protocol version in the header of its messages.
    pub version: &'static str,
    /// The path of the endpoint.
    pub path: String,
}

impl HttpClient {
    /// A client without a session.
    pub fn without_session(address: SocketAddr) -> Self {
        Self {
            address,
            session: None,
            token: None,
            version: LEGACY,
            path: "/mcp".to_owned(),
        }
    }

    /// A modern client.
    pub fn modern(address: SocketAddr) -> Self {
        Self {
            version: MODERN,
            ..Self::without_session(address)
        }
    }

    /// A client with a session of 2025-11-25.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut client = Self::without_session(address);
        client.introduce(LEGACY).await;
        client
    }

    /// Sends `initialize` and returns its result.
    pub async fn introduce(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": { "elicitation": {}, "sampling": {} },
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let response = self.request("initialize", params).await;
        assert_eq!(response.status, 200);
        self.session = response.header("mcp-session-id").map(str::to_owned);
        let result = response.json().await["result"].clone();
        let accepted = self
            .post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        assert_eq!(accepted.status, 202);
        result
    }

    /// Sends a request and returns its response of any kind.
    pub async fn request(&self, method: &str, params: Value) -> HttpResponse {
        self.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .await
    }

    /// Sends a request whose response is JSON.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let response = self.request(method, params).await;
        assert_eq!(response.status, 200);
        response.json().await
    }

    /// Sends a request and returns the response, which is JSON or the last message of a stream.
    pub async fn response(&self, method: &str, params: Value) -> Value {
        let mut response = self.request(method, params).await;
        if !response.is_stream() {
            return response.json().await;
        }
        let rest = response.rest().await;
        rest.into_iter().next_back().expect("a response")
    }

    /// The same for a modern request of a client with these capabilities.
    pub async fn modern_response(&self, method: &str, params: Value, capabilities: Value) -> Value {
        let client = Self {
            session: None,
            version: MODERN,
            ..self.clone()
        };
        let params = with_modern_meta(params, capabilities);
        client.response(method, params).await
    }

    /// Sends a GET request to `path` without other headers; returns the status and the body.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let request = request_bytes(&self.address.to_string(), "GET", path, &[], &[], b"");
        let response = http::send(self.address, &request).await;
        let status = response.status;
        let body = response.body().await.expect("a body");
        (status, String::from_utf8(body).expect("text"))
    }

    /// Calls a tool.
    pub async fn tool(&self, name: &str, arguments: Value) -> HttpResponse {
        let params = json!({
            "name": name, "arguments": arguments, "_meta": { "progressToken": "p" },
        });
        self.request("tools/call", params).await
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
    pub async fn result(&self, task: &str) -> HttpResponse {
        self.request("tasks/result", json!({ "taskId": task }))
            .await
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
    pub async fn listen(&self, last: Option<&str>) -> HttpResponse {
        let last = last.map(|last| ("last-event-id", last));
        let response = self.send("GET", last.as_slice(), b"").await;
        assert_eq!(response.status, 200);
        assert!(response.is_stream());
        response
    }

    /// Ends the session.
    pub async fn delete_session(&self) -> HttpResponse {
        self.send("DELETE", &[], b"").await
    }

    /// Sends a message.
    pub async fn post(&self, message: &Value) -> HttpResponse {
        self.post_with(message, &[]).await
    }

    /// Sends a message with these headers instead of the usual ones; one without a value is
    /// omitted.
    pub async fn post_with(&self, message: &Value, other: &[(&str, &str)]) -> HttpResponse {
        let mirrored = if self.version == MODERN {
            modern_headers(message)
        } else {
            Vec::new()
        };
        let body = message.to_string();
        self.send_with("POST", &mirrored, other, body.as_bytes())
            .await
    }

    /// Sends a body.
    pub async fn post_bytes(&self, body: &[u8]) -> HttpResponse {
        self.send("POST", &[], body).await
    }

    /// Sends a request with these headers instead of the usual ones; one without a value is
    /// omitted.
    pub async fn send(&self, method: &str, other: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        self.send_with(method, &[], other, body).await
    }

    async fn send_with(
        &self,
        method: &str,
        mirrored: &[(&str, &str)],
        other: &[(&str, &str)],
        body: &[u8],
    ) -> HttpResponse {
        let mut headers = message_headers(self.version).to_vec();
        let token = self.token.map(|token| format!("Bearer {token}"));
        headers.extend(token.as_deref().map(|token| ("authorization", token)));
        let session = self.session.as_deref();
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        headers.extend(mirrored);
        let authority = self.address.to_string();
        let request = request_bytes(&authority, method, &self.path, &headers, other, body);
        http::send(self.address, &request).await
    }
}

const LEGACY: &str = "2025-11-25";
