//! The examples for stdio, run as processes.

use std::ops::{Deref, DerefMut};
use std::process::Command;

use outlast_testkit::mcp::ProcessClient;
use outlast_testkit::{RunCommand, example};
use serde_json::{Value, json};

/// A client of an example in a process of its own.
struct Process(ProcessClient);

impl Process {
    /// Starts the example `name` and introduces the client.
    fn start(name: &str) -> (Self, Value) {
        let mut client = ProcessClient::start(&mut Command::new(example(name)));
        let met = client.initialize(json!({ "elicitation": {}, "sampling": {} }));
        (Self(client), met)
    }

    /// Sends a request and waits for its response; input requests on the way are answered.
    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let message = self.find(|message| message.get("id").is_some());
            let answer = match message["method"].as_str() {
                None => {
                    assert_eq!(message["id"], id, "{message}");
                    return message;
                }
                Some("elicitation/create") => {
                    json!({ "action": "accept", "content": { "confirm": true } })
                }
                Some("sampling/createMessage") => json!({
                    "role": "assistant", "model": "none",
                    "content": { "type": "text", "text": "Tides come and go." },
                }),
                Some(other) => panic!("{other} is not expected here"),
            };
            self.respond(&message, answer);
        }
    }

    /// Calls a tool as a task and returns its id.
    fn task(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
        let created = self.call("tools/call", params);
        let task = &created["result"]["task"];
        assert_eq!(task["ttl"], 60_000, "{created}");
        task["taskId"].clone()
    }

    /// Closes the pipe; the server ends by itself.
    fn close(self) {
        assert!(self.0.close().success());
    }
}

impl Deref for Process {
    type Target = ProcessClient;

    fn deref(&self) -> &ProcessClient {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut ProcessClient {
        &mut self.0
    }
}

#[test]
fn test_tasks_runs_its_tool_only_as_a_task() {
    // S4-79 to S4-83.
    let (mut server, met) = Process::start("test_tasks");
    assert_eq!(
        met["serverInfo"],
        json!({ "name": "test-tasks", "version": "1.0.0" })
    );
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(met["capabilities"]["tasks"], tasks);
    let list = server.call("tools/list", json!({}));
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["name"], "long_running_task");
    assert_eq!(tool["execution"]["taskSupport"], "required");
    assert_eq!(tool["inputSchema"]["required"], json!(["duration"]));
    let duration = &tool["inputSchema"]["properties"]["duration"];
    assert_eq!(
        (&duration["type"], &duration["description"]),
        (&json!("number"), &json!("Duration in seconds."))
    );
    let plain = json!({ "name": "long_running_task", "arguments": { "duration": 1 } });
    assert_eq!(server.call("tools/call", plain)["error"]["code"], -32601);
    let began = std::time::Instant::now();
    let task = server.task("long_running_task", json!({ "duration": 0.2 }));
    let named = json!({ "taskId": task });
    let result = server.call("tasks/result", named.clone());
    assert!(began.elapsed() >= std::time::Duration::from_millis(200));
    // S4-82: it keeps the status of each of its tasks.
    let long = server.task("long_running_task", json!({ "duration": 3_600 }));
    let statuses = [named, json!({ "taskId": long })]
        .map(|named| server.call("tasks/get", named)["result"]["status"].clone());
    assert_eq!(statuses, ["completed", "working"]);
    let listed = server.call("tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        result["result"]["content"][0]["text"],
        "Completed after 0.2s"
    );
    server.close();
}

#[test]
fn the_samples_use_elicitation_and_sampling() {
    let (mut server, _) = Process::start("samples");
    let task = server.task("confirm_and_sample", json!({ "topic": "tides" }));
    let result = server.call("tasks/result", json!({ "taskId": task }));
    assert_eq!(result["result"]["content"][0]["text"], "Tides come and go.");
    let plain = json!({ "name": "confirm_and_sample", "arguments": { "topic": "tides" } });
    let result = server.call("tools/call", plain);
    assert_eq!(result["result"]["content"][0]["text"], "Tides come and go.");
    server.close();
}

#[test]
fn middleware_adds_a_custom_method() {
    // S3-1, S3-6, S3-8.
    let (mut server, _) = Process::start("custom_method");
    let list = server.call("tools/list", json!({}));
    assert_eq!(
        list["result"]["tools"][0]["description"],
        "Says hello (counted)"
    );
    let task = server.task("hello", json!({}));
    server.call("tasks/result", json!({ "taskId": task }));
    let counts = server.call("acme/counts", json!({}))["result"]["counts"].clone();
    let expected = json!({
        "initialize": 1, "notifications/initialized": 1, "tools/list": 1, "tools/call": 1,
        "tasks/result": 1,
    });
    assert_eq!(counts, expected);
    assert_eq!(
        server.call("acme/other", json!({}))["error"]["code"],
        -32601
    );
    server.close();
}

#[test]
fn the_next_run_finds_the_task_of_the_last_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let run = || {
        let output = Command::new(example("durable_tool")).arg(&file).run();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (first, second) = (run(), run());
    let stored = first.lines().find_map(|line| {
        let id = line.strip_prefix("task ")?;
        id.strip_suffix(" is stored")
    });
    let found = format!("the last run created task {}", stored.unwrap());
    let found = second.lines().find(|line| line.starts_with(&found));
    assert!(found.unwrap().contains("4 pages drawn"), "{second}");
}
