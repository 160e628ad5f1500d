//! A client on stdio that writes its own messages, in both eras.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use outlast::server::McpServer;
use outlast::transport::stdio;
use outlast_testkit::mcp::{Line, LineClient, with_modern_meta};
use outlast_testkit::wait_for;
use serde_json::{Value, json};

use crate::schema;

/// A client on stdio.
pub(crate) struct StdioClient(LineClient);

impl StdioClient {
    pub(crate) fn connect(mcp_server: Arc<McpServer>) -> Self {
        let line = Line::served_by(|read, write| stdio::serve_on(mcp_server, read, write));
        Self(LineClient::new(line, check))
    }

    /// Sends a modern request that declares tasks and all input requests; returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Value {
        self.send_with(method, params, everything()).await
    }

    /// Sends a modern request with these capabilities; returns its id.
    pub(crate) async fn send_with(&mut self, method: &str, params: Value, can: Value) -> Value {
        let id = json!(format!("m{}", self.fresh_id()));
        self.send_as(&id, method, with_modern_meta(params, can))
            .await;
        id
    }

    /// Sends a modern request and waits for its response; other messages are kept.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.response_to(id).await
    }

    pub(crate) async fn call_with(&mut self, method: &str, params: Value, can: Value) -> Value {
        let id = self.send_with(method, params, can).await;
        self.response_to(id).await
    }

    /// Calls a tool without arguments.
    pub(crate) async fn tool(&mut self, name: &str) -> Value {
        self.call("tools/call", json!({ "name": name })).await
    }

    /// Calls a tool that becomes a task; returns the task's id.
    pub(crate) async fn task(&mut self, name: &str) -> String {
        let created = self.tool(name).await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        created["result"]["taskId"].as_str().unwrap().to_owned()
    }

    /// The result of `tasks/get`.
    pub(crate) async fn status(&mut self, task: &str) -> Value {
        let got = self.call("tasks/get", json!({ "taskId": task })).await;
        got["result"].clone()
    }

    /// Waits until a task has this status, and returns it.
    pub(crate) async fn until(&mut self, task: &str, status: &str) -> Value {
        wait_for(status, async || {
            let now = self.status(task).await;
            assert!(now.is_object(), "{now}");
            (now["status"] == status).then_some(now)
        })
        .await
    }

    /// Sends a legacy request and waits for its response.
    pub(crate) async fn legacy(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.fresh_id());
        self.request(&id, method, params).await;
        self.response_to(id).await
    }

    /// Asserts that no message arrives for a while.
    pub(crate) async fn silence(&mut self) {
        assert_eq!(self.early(), None);
        self.0.silence(Duration::from_secs(60)).await;
    }
}

impl Deref for StdioClient {
    type Target = LineClient;

    fn deref(&self) -> &LineClient {
        &self.0
    }
}

impl DerefMut for StdioClient {
    fn deref_mut(&mut self) -> &mut LineClient {
        &mut self.0
    }
}

/// Checks a message of the modern era against the schema.
fn check(message: &Value, method: Option<&str>) {
    let legacy = message["id"].is_i64() || message["method"] == "notifications/tasks/status";
    if !legacy {
        schema::check(message, method);
    }
}

/// Capabilities of a client that supports everything.
pub(crate) fn everything() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {},
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

/// Capabilities of a client without task support.
pub(crate) fn no_tasks() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}
