//! An rmcp server on a real file, killed by SIGKILL and restarted; its client reconnects.

use std::path::Path;
use std::time::Duration;

use outlast_testkit::{ServerProcess, eventually};
use serde_json::{Value, json};

use crate::harness::text;
use crate::http_caller::Caller;

#[tokio::test]
async fn a_killed_server_keeps_results_and_repeats_only_repeatable_calls() {
    // P1 to P5 of the promises, for a server without task code.
    let run = tokio::time::timeout(TEST_TIMEOUT, two_kills());
    run.await.expect("every answer comes");
}

async fn two_kills() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let server = start(&file, "127.0.0.1:0");
    let caller = Caller::connect(server.address()).await;
    let done = task(&caller, "render_report", "Rain", 1).await;
    let rain = result(&caller, &done).await;
    assert_eq!(text(&rain), "Rain: 1 pages");
    // Their tool is repeatable. One of them takes longer than the test.
    let again = task(&caller, "render_report", "Snow", 20).await;
    let long = task(&caller, "render_report", "Ice", 1_000).await;
    // This one is not repeatable, and waits for the user.
    let lost = task(&caller, "delete_report", "Hail", 1).await;
    until(&caller, &lost, "input_required").await;
    assert_eq!(status(&caller, &long).await["status"], "working");

    let server = kill_and_start(server, &file);
    assert_eq!(result(&caller, &done).await, rain);
    let unknown = status(&caller, &lost).await;
    assert_eq!(unknown["status"], "failed");
    let why = unknown["statusMessage"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    let failed = result(&caller, &lost).await;
    assert_eq!(failed["error"]["code"], -32603);
    assert!(text(&failed).contains("outcome is unknown"), "{failed}");
    let snow = result(&caller, &again).await;
    assert_eq!(text(&snow), "Snow: 20 pages");
    assert_eq!(status(&caller, &long).await["status"], "working");
    let stop = json!({ "taskId": long });
    let stopped = caller.call("tasks/cancel", stop).await["result"].clone();
    assert_eq!(stopped["status"], "cancelled");

    // All tasks have ended and stay so; the session has a new handler.
    let _server = kill_and_start(server, &file);
    assert_eq!(result(&caller, &done).await, rain);
    assert_eq!(result(&caller, &again).await, snow);
    assert_eq!(result(&caller, &lost).await, failed);
    assert_eq!(status(&caller, &lost).await, unknown);
    assert_eq!(status(&caller, &long).await, stopped);
    let params = json!({ "name": "render_report", "arguments": { "title": "Fog", "pages": 1 } });
    let plain = caller.call("tools/call", params).await;
    assert_eq!(text(&plain), "Fog: 1 pages");
}

#[tokio::test]
async fn v2_tasks_survive_a_kill() {
    // V2-CREATE-5.
    let run = tokio::time::timeout(TEST_TIMEOUT, modern_tasks_and_a_kill());
    run.await.expect("every answer comes");
}

async fn modern_tasks_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let server = start(&file, "127.0.0.1:0");
    let caller = Caller::connect(server.address()).await;
    let done = promoted(&caller, "render_report", "Rain", 20).await;
    let rain = settled(&caller, &done).await;
    assert_eq!(rain["result"]["content"][0]["text"], "Rain: 20 pages");
    let again = promoted(&caller, "render_report", "Snow", 20).await;
    let lost = promoted(&caller, "delete_report", "Hail", 1).await;
    assert_eq!(settled(&caller, &lost).await["status"], "input_required");

    let _server = kill_and_start(server, &file);
    assert_eq!(poll(&caller, &done).await, rain);
    let unknown = poll(&caller, &lost).await;
    assert_eq!(unknown["status"], "failed");
    let why = unknown["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    let snow = settled(&caller, &again).await;
    assert_eq!(snow["result"]["content"][0]["text"], "Snow: 20 pages");
}

/// Starts the example on `file`, listening at `address`.
fn start(file: &Path, address: &str) -> ServerProcess {
    let store = file.to_str().unwrap();
    ServerProcess::example("rmcp_server", &["--store", store, "--http", address])
}

/// Kills the server, and starts it again on the same file and the same port.
fn kill_and_start(server: ServerProcess, file: &Path) -> ServerProcess {
    let address = server.address().to_string();
    server.kill();
    start(file, &address)
}

/// Calls a tool as a task and returns the task.
async fn task(caller: &Caller, tool: &str, title: &str, pages: u32) -> String {
    let arguments = json!({ "title": title, "pages": pages });
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    let created = caller.call("tools/call", params).await;
    let task = created["result"]["task"]["taskId"].as_str();
    task.unwrap_or_else(|| panic!("{created}")).to_owned()
}

async fn result(caller: &Caller, task: &str) -> Value {
    caller.call("tasks/result", json!({ "taskId": task })).await
}

async fn status(caller: &Caller, task: &str) -> Value {
    let looked = caller.call("tasks/get", json!({ "taskId": task })).await;
    looked["result"].clone()
}

async fn until(caller: &Caller, task: &str, wanted: &str) {
    let reached = async || status(caller, task).await["status"] == wanted;
    eventually(wanted, reached).await;
}

/// Calls a tool as a modern client does, and returns the task that the call becomes.
async fn promoted(caller: &Caller, tool: &str, title: &str, pages: u32) -> String {
    let arguments = json!({ "title": title, "pages": pages });
    let params = json!({ "name": tool, "arguments": arguments });
    let created = caller.modern("tools/call", params).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

/// The status of a task for a modern client.
async fn poll(caller: &Caller, task: &str) -> Value {
    let looked = caller.modern("tasks/get", json!({ "taskId": task })).await;
    looked["result"].clone()
}

/// A task of a modern client once it is not `working`.
async fn settled(caller: &Caller, task: &str) -> Value {
    let mut now = Value::Null;
    let settled = async || {
        now = poll(caller, task).await;
        now["status"] != "working"
    };
    eventually("the task settles", settled).await;
    now
}

/// A generous limit for the whole test.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
