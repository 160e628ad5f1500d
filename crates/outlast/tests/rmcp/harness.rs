//! The harness: a server with the test handler, and scripted clients on a pipe.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use outlast::engine::Engine;
use outlast::rmcp::Rmcp;
use outlast::server::McpServer;
use outlast::store::Store;
use outlast::transport::stdio;
use outlast::{Server, ServerBuilder, TaskSupport};
use outlast_testkit::mcp::{Line, LineClient, check_v1};
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::test_handler::{HandlerControl, Reports};

/// A running server.
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) mcp_server: Arc<McpServer>,
    pub(crate) control: Arc<HandlerControl>,
    pub(crate) reports: Reports,
}

/// A client on a pipe.
pub(crate) struct RmcpTestClient(LineClient);

/// The test handler. All its tools except `echo` can run as tasks.
pub(crate) fn test_handler(control: &Arc<HandlerControl>) -> ServerBuilder<Rmcp> {
    let control = control.clone();
    let server = Server::rmcp(move || control.test_handler());
    let tools = [
        "gated",
        "boom",
        "flagged",
        "steps",
        "elicit",
        "elicit apart",
        "sample and roots",
        "listens",
        "deaf",
        "shout",
        "caller",
    ];
    tools.into_iter().fold(server, |server, tool| {
        server.task(tool, TaskSupport::Optional)
    })
}

impl Harness {
    pub(crate) async fn new() -> Self {
        Self::of(|server| server).await
    }

    pub(crate) async fn on(store: Arc<dyn Store>) -> Self {
        Self::of(|server| server.store(store)).await
    }

    async fn of(with: impl FnOnce(ServerBuilder<Rmcp>) -> ServerBuilder<Rmcp>) -> Self {
        let (control, reports) = HandlerControl::new();
        let server = with(test_handler(&control)).build();
        let running = server.start().await.unwrap();
        Self {
            engine: running.engine().clone(),
            mcp_server: running.mcp().clone(),
            control,
            reports,
        }
    }

    /// An initialized client of 2025-11-25 that supports all input requests.
    pub(crate) async fn client(&self) -> RmcpTestClient {
        let mut client = RmcpTestClient::connect(self.mcp_server.clone());
        let all = json!({ "elicitation": {}, "sampling": {}, "roots": {}, "tasks": {} });
        client.initialize_legacy(all).await;
        client
    }

    /// Waits until a handler reports `wanted`.
    pub(crate) async fn wait_for_report(&mut self, wanted: &str) {
        loop {
            let reports = within(wanted, self.reports.recv()).await;
            if reports.as_deref() == Some(wanted) {
                return;
            }
        }
    }
}

impl RmcpTestClient {
    pub(crate) fn connect(mcp_server: Arc<McpServer>) -> Self {
        let line = Line::served_by(|read, write| stdio::serve_on(mcp_server, read, write));
        Self(LineClient::new(line, check))
    }

    pub(crate) async fn initialize_legacy(&mut self, capabilities: Value) -> Value {
        self.initialize("2025-11-25", capabilities).await
    }

    /// A request of 2026-07-28 from a client with tasks and form elicitation, and its response.
    pub(crate) async fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "2" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": { "form": {} },
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        // The schema here is that of 2025-11-25, so this response is not checked.
        let id = json!(self.fresh_id());
        self.request(&id, method, params).await;
        self.response_to(id).await
    }

    /// Calls a tool without a task and returns the text of its result.
    pub(crate) async fn tool(&mut self, name: &str) -> String {
        let answer = self.call("tools/call", json!({ "name": name })).await;
        text(&answer)
    }

    /// Calls a tool as a task and returns the task.
    pub(crate) async fn task(&mut self, name: &str) -> String {
        let params = json!({ "name": name, "task": {}, "_meta": { "progressToken": "p" } });
        let created = self.call("tools/call", params).await;
        let task = created["result"]["task"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    pub(crate) async fn result(&mut self, task: &str) -> Value {
        self.call("tasks/result", json!({ "taskId": task })).await
    }

    pub(crate) async fn status(&mut self, task: &str) -> String {
        let answer = self.call("tasks/get", json!({ "taskId": task })).await;
        answer["result"]["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Responds to an elicitation with a name.
    pub(crate) async fn name(&mut self, request: &Value, name: &str) {
        let result = json!({ "action": "accept", "content": { "name": name } });
        self.respond(&request["id"], result).await;
    }
}

/// Validates any message except a modern result.
fn check(message: &Value, method: Option<&str>) {
    if method.is_some() || message.get("result").is_none() {
        check_v1(message, method);
    }
}

impl Deref for RmcpTestClient {
    type Target = LineClient;

    fn deref(&self) -> &LineClient {
        &self.0
    }
}

impl DerefMut for RmcpTestClient {
    fn deref_mut(&mut self) -> &mut LineClient {
        &mut self.0
    }
}

/// The first text of a result, or the message of an error.
pub(crate) fn text(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.or(answer["error"]["message"].as_str());
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}
