//! A client on the standard input and output of a server that it starts, as a host does.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::{OutputLines, wait_for_end};

/// A client whose messages the test writes, and the process of its server, which ends with it.
pub struct ProcessClient {
    child: Child,
    /// `None` after [`ProcessClient::close`].
    stdin: Option<ChildStdin>,
    lines: OutputLines,
    last_id: i64,
    /// Messages that arrived before they were expected.
    early: Vec<Value>,
}

impl ProcessClient {
    /// Starts the server.
    pub fn start(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let lines = OutputLines::read(child.stdout.take().expect("a pipe"));
        Self {
            child,
            stdin,
            lines,
            last_id: 0,
            early: Vec::new(),
        }
    }

    /// Introduces the client at 2025-11-25 and returns the result.
    pub fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "by-hand", "version": "1" },
        });
        let response = self.call("initialize", params);
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        response["result"].clone()
    }

    /// Sends a request and waits for its response; other messages are kept.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response_to(id)
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The response to a request.
    pub fn response_to(&mut self, id: i64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    /// The next request of the server.
    pub fn next_request(&mut self) -> Value {
        self.find(|message| message.get("id").is_some() && message.get("method").is_some())
    }

    /// Responds to a request of the server with a result.
    pub fn respond(&mut self, request: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Calls a tool as a task and returns the id of the task.
    pub fn task(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let created = self.call("tools/call", params);
        let task = created["result"]["task"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    /// Sends any message.
    pub fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("the pipe is not closed");
        writeln!(stdin, "{message}").expect("the server reads");
    }

    /// The first message that is `wanted`; other messages are kept.
    pub fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&wanted) {
            return self.early.remove(at);
        }
        loop {
            let message = self.read();
            if wanted(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// Messages that arrived before they were expected.
    pub fn early(&self) -> &[Value] {
        &self.early
    }

    /// Closes the standard input of the server and waits for its end.
    pub fn close(mut self) -> ExitStatus {
        drop(self.stdin.take());
        wait_for_end(&mut self.child)
    }

    fn read(&mut self) -> Value {
        let line = self.lines.next().expect("the server runs");
        // V1-STDIO-2: every line is a message.
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

impl Drop for ProcessClient {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
