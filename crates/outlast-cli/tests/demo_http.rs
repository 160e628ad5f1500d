//! `outlast demo --http` for an MCP client.

#[path = "launcher/outlast.rs"]
mod launcher;

use std::process::Stdio;

use outlast_testkit::mcp::HttpConnection;
use outlast_testkit::{OutputLines, ServerProcess, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use launcher::outlast;

/// The demo, until it is dropped.
struct Demo {
    process: ServerProcess,
    session: Option<String>,
    _home: TempDir,
}

impl Demo {
    fn start(store: &str) -> Self {
        let home = TempDir::new().expect("a folder");
        let mut demo = outlast(home.path());
        demo.args(["demo", "--http", "127.0.0.1:0", "--store", store])
            .stderr(Stdio::piped());
        Self {
            process: ServerProcess::start(&mut demo, 1),
            session: None,
            _home: home,
        }
    }

    /// Sends a message and returns the response, which is JSON or empty.
    fn post(&mut self, message: &Value) -> Value {
        let session = self.session.clone().unwrap_or_default();
        let headers = [("mcp-session-id", session.as_str())];
        let mut connection = HttpConnection::open(self.process.authority());
        let response = connection.post("/mcp", "2025-11-25", message, &headers);
        let named = response.header("mcp-session-id").map(str::to_owned);
        self.session = named.or(self.session.take());
        serde_json::from_str(&response.body).unwrap_or_default()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post(&message)["result"].clone()
    }
}

#[test]
fn the_demo_serves_the_samples_and_prints_how_to_connect() {
    let mut demo = Demo::start("memory:");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let met = demo.call("initialize", params);
    assert_eq!(met["serverInfo"]["name"], "outlast-demo");
    let list = demo.call("tools/list", json!({}));
    let tools = list["tools"].as_array().expect("tools");
    for (name, support) in [
        ("LongRunningAnalysis", "optional"),
        ("long_running_task", "required"),
        ("confirm_and_sample", "optional"),
        ("countdown", "optional"),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        let tool = tool.unwrap_or_else(|| panic!("{name} is missing: {list}"));
        assert_eq!(tool["execution"]["taskSupport"], support, "{name}");
    }
    let arguments = json!({ "data": "tides", "durationSeconds": 0 });
    let call = json!({ "name": "LongRunningAnalysis", "arguments": arguments, "task": {} });
    let task = demo.call("tools/call", call)["task"]["taskId"].clone();
    until("the task ends", || {
        demo.call("tasks/get", json!({ "taskId": task }))["status"] == "completed"
    });
    let result = demo.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["content"][0]["text"], "Analysis complete for: tides");
    let mut lines = OutputLines::read(demo.process.child().stderr.take().expect("a pipe"));
    let names_url = |line: &str| line.contains("\"url\"") && line.contains(demo.process.url());
    lines.find("how to connect", names_url);
}

#[test]
fn an_address_that_other_machines_reach_is_reported() {
    let home = TempDir::new().expect("a folder");
    for command in [
        &["demo", "--store", "memory:"][..],
        &["serve", "--store", "memory:", "--no-probe"],
    ] {
        let mut server = outlast(home.path());
        server
            .args(command)
            .args(["--http", "0.0.0.0:0"])
            .stderr(Stdio::piped());
        if command[0] == "serve" {
            server.args(["--", "cat"]);
        }
        let mut server = ServerProcess::start(&mut server, 1);
        let mut lines = OutputLines::read(server.child().stderr.take().expect("a pipe"));
        lines.until("warning: on 0.0.0.0 other machines can connect");
        assert!(server.url().contains("127.0.0.1"), "{}", server.url());
    }
}
