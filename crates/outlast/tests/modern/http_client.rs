//! A modern client over HTTP that writes its own bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast::server::McpServer;
use outlast::transport::http::{HttpOptions, HttpServer, serve};
use outlast_testkit::mcp::http::{self as bytes, Answer};
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::schema;
use crate::stdio_client::{everything, said};

pub(crate) async fn served(front: &Arc<McpServer>) -> HttpServer {
    serve(front.clone(), HttpOptions::default()).await.unwrap()
}

/// A client.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<&'static str>,
    /// What it can do.
    pub(crate) can: Value,
}

impl Http {
    pub(crate) fn of(server: &HttpServer) -> Self {
        Self {
            address: server.local_addr(),
            token: None,
            can: everything(),
        }
    }

    pub(crate) fn with_token(server: &HttpServer, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..Self::of(server)
        }
    }

    /// The request as a client sends it, with the headers that repeat it.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answer {
        self.ask_with(method, params, &[]).await
    }

    /// The same with some headers changed; one without a value is left out.
    pub(crate) async fn ask_with(
        &self,
        method: &str,
        params: Value,
        other: &[(&str, &str)],
    ) -> Answer {
        let params = said(params, self.can.clone());
        let message = json!({ "jsonrpc": "2.0", "id": "h", "method": method, "params": params });
        self.post(&message, other).await
    }

    pub(crate) async fn post(&self, message: &Value, other: &[(&str, &str)]) -> Answer {
        let body = message.to_string();
        let (host, length) = (self.address.to_string(), body.len().to_string());
        let params = &message["params"];
        let name = ["name", "uri", "taskId"];
        let name = name.iter().find_map(|name| params[name].as_str());
        let mut headers = vec![
            ("host", host.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("content-length", &length),
            ("mcp-protocol-version", "2026-07-28"),
        ];
        headers.extend(
            message["method"]
                .as_str()
                .map(|method| ("mcp-method", method)),
        );
        headers.extend(name.map(|name| ("mcp-name", name)));
        let say = params["arguments"]["say"].as_str();
        headers.extend(say.map(|say| ("mcp-param-say", say)));
        let token = self.token.map(|token| format!("Bearer {token}"));
        headers.extend(token.as_deref().map(|token| ("authorization", token)));
        headers.retain(|(name, _)| {
            let mut replaced = other.iter().map(|(name, _)| name);
            !replaced.any(|replaced| replaced.eq_ignore_ascii_case(name))
        });
        headers.extend(other.iter().filter(|(_, value)| !value.is_empty()));
        let mut request = String::from("POST /mcp HTTP/1.1\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(&body);
        bytes::send(self.address, request.as_bytes()).await
    }

    /// Sends a request that is answered by JSON with status 200.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert_eq!(answer.status, 200);
        let answer = answer.json().await;
        schema::check(&answer, Some(method));
        answer
    }

    /// Sends a request that is refused, and returns the status and the code.
    pub(crate) async fn refused(
        &self,
        method: &str,
        params: Value,
        other: &[(&str, &str)],
    ) -> (u16, i64) {
        let answer = self.ask_with(method, params, other).await;
        let status = answer.status;
        let error = answer.json().await;
        assert_eq!(error["id"], "h");
        schema::check(&error, Some(method));
        (status, error["error"]["code"].as_i64().unwrap())
    }

    /// Calls a tool that becomes a task, and returns the task's id.
    pub(crate) async fn task(&self, name: &str) -> String {
        let created = self.call("tools/call", json!({ "name": name })).await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        created["result"]["taskId"].as_str().unwrap().to_owned()
    }

    /// What `tasks/get` says.
    pub(crate) async fn status(&self, task: &str) -> Value {
        self.call("tasks/get", json!({ "taskId": task })).await["result"].clone()
    }

    /// Waits until a task has this status, and returns it.
    pub(crate) async fn until(&self, task: &str, status: &str) -> Value {
        // Not `wait_for`: the future of an async closure cannot be spawned.
        let reached = async {
            loop {
                let now = self.status(task).await;
                if now["status"] == status {
                    return now;
                }
                assert!(now.is_object(), "{now}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(status, reached).await
    }
}

/// The next message of a stream, held against the schema.
pub(crate) async fn next(stream: &mut Answer, method: &str) -> Value {
    let event = stream.event().await.expect("the stream goes on");
    // V2-HTTP-7: there is nothing to resume.
    assert_eq!(event.id, None);
    let message = event.message.unwrap();
    schema::check(&message, Some(method));
    message
}
