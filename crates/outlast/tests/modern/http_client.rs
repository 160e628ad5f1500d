//! A modern HTTP client that writes its own bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast::server::McpServer;
use outlast::transport::http::{HttpOptions, HttpServer, serve};
use outlast_testkit::mcp::http::Answer;
use outlast_testkit::mcp::{HttpClient, with_modern_meta};
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::schema;
use crate::stdio_client::everything;

pub(crate) async fn served(mcp_server: &Arc<McpServer>) -> HttpServer {
    serve(mcp_server.clone(), HttpOptions::default())
        .await
        .unwrap()
}

/// A client.
#[derive(Clone)]
pub(crate) struct ModernHttpClient {
    pub(crate) http: HttpClient,
    /// The capabilities that it declares.
    pub(crate) can: Value,
}

impl ModernHttpClient {
    pub(crate) fn of(server: &HttpServer) -> Self {
        Self::at(server.local_addr(), None)
    }

    pub(crate) fn with_token(server: &HttpServer, token: &'static str) -> Self {
        Self::at(server.local_addr(), Some(token))
    }

    pub(crate) fn at(address: SocketAddr, token: Option<&'static str>) -> Self {
        let http = HttpClient {
            token,
            ..HttpClient::modern(address)
        };
        Self {
            http,
            can: everything(),
        }
    }

    /// Sends a request with the headers that repeat its body.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answer {
        self.ask_with(method, params, &[]).await
    }

    /// Sends a request with some headers replaced; one with an empty value is omitted.
    pub(crate) async fn ask_with(
        &self,
        method: &str,
        params: Value,
        other: &[(&str, &str)],
    ) -> Answer {
        let params = with_modern_meta(params, self.can.clone());
        let message = json!({ "jsonrpc": "2.0", "id": "h", "method": method, "params": params });
        self.post(&message, other).await
    }

    pub(crate) async fn post(&self, message: &Value, other: &[(&str, &str)]) -> Answer {
        // The input schema of the tool maps its argument `say` to this header.
        let mut headers = other.to_vec();
        if let Some(say) = message["params"]["arguments"]["say"].as_str()
            && other.iter().all(|(name, _)| *name != "mcp-param-say")
        {
            headers.push(("mcp-param-say", say));
        }
        self.http.post_with(message, &headers).await
    }

    /// Sends a request whose response is JSON with status 200.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params).await;
        assert_eq!(response.status, 200);
        let response = response.json().await;
        schema::check(&response, Some(method));
        response
    }

    /// Sends a request that is rejected; returns the status and the error code.
    pub(crate) async fn refused(
        &self,
        method: &str,
        params: Value,
        other: &[(&str, &str)],
    ) -> (u16, i64) {
        let response = self.ask_with(method, params, other).await;
        let status = response.status;
        let error = response.json().await;
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

    /// The result of `tasks/get`.
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

/// The next message of a stream, checked against the schema.
pub(crate) async fn next(stream: &mut Answer, method: &str) -> Value {
    let event = stream.event().await.expect("the stream goes on");
    // V2-HTTP-7: the stream cannot be resumed.
    assert_eq!(event.id, None);
    let message = event.message.unwrap();
    schema::check(&message, Some(method));
    message
}
