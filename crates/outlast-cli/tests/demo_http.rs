//! `outlast demo --http` as an MCP client meets it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The demo, until it is dropped.
struct Demo {
    child: Child,
    /// Host and port.
    authority: String,
    session: Option<String>,
}

impl Demo {
    fn start(store: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_outlast"))
            .args(["demo", "--http", "127.0.0.1:0", "--store", store])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the demo starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut url)
            .expect("the URL is printed");
        let rest = url.trim_end().strip_prefix("http://").expect("a URL");
        let authority = rest.split('/').next().unwrap_or_default().to_owned();
        Self {
            child,
            authority,
            session: None,
        }
    }

    /// Sends a message and returns what is answered, which is JSON or nothing.
    fn post(&mut self, message: &Value) -> Value {
        let body = message.to_string();
        let session = match &self.session {
            Some(name) => format!("mcp-session-id: {name}\r\n"),
            None => String::new(),
        };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{session}\r\n{body}",
            self.authority,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.authority).expect("the demo listens");
        stream.write_all(request.as_bytes()).expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let named = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = named.map(str::to_owned).or(self.session.take());
        serde_json::from_str(body).unwrap_or_default()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post(&message)["result"].clone()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_demo_serves_the_samples_and_says_how_to_connect() {
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
    loop {
        let got = demo.call("tasks/get", json!({ "taskId": task }));
        match got["status"].as_str() {
            Some("working") => std::thread::sleep(std::time::Duration::from_millis(10)),
            status => break assert_eq!(status, Some("completed"), "{got}"),
        }
    }
    let result = demo.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["content"][0]["text"], "Analysis complete for: tides");
    let mut said = BufReader::new(demo.child.stderr.take().expect("a pipe")).lines();
    let address = format!("http://{}/mcp", demo.authority);
    assert!(
        said.any(|line| line.is_ok_and(|line| line.contains("\"url\"") && line.contains(&address)))
    );
}
