//! An rmcp server on a real file, killed by SIGKILL and restarted; its client reconnects.

use std::path::Path;
use std::time::Duration;

use outlast_testkit::mcp::HttpClient;
use outlast_testkit::{ServerProcess, eventually};
use serde_json::{Value, json};

use crate::harness::text;

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
    let client = HttpClient::connect(server.address()).await;
    let done = task(&client, "render_report", "Rain", 1).await;
    let rain = result(&client, &done).await;
    assert_eq!(text(&rain), "Rain: 1 pages");
    // Their tool is repeatable. One of them takes longer than the test.
    let again = task(&client, "render_report", "Snow", 20).await;
    let long = task(&client, "render_report", "Ice", 1_000).await;
    // This one is not repeatable, and waits for the user.
    let lost = task(&client, "delete_report", "Hail", 1).await;
    until(&client, &lost, "input_required").await;
    assert_eq!(status(&client, &long).await["status"], "working");

    let server = kill_and_start(server, &file);
    assert_eq!(result(&client, &done).await, rain);
    let unknown = status(&client, &lost).await;
    assert_eq!(unknown["status"], "failed");
    let why = unknown["statusMessage"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    let failed = result(&client, &lost).await;
    assert_eq!(failed["error"]["code"], -32603);
    assert!(text(&failed).contains("outcome is unknown"), "{failed}");
    let snow = result(&client, &again).await;
    assert_eq!(text(&snow), "Snow: 20 pages");
    assert_eq!(status(&client, &long).await["status"], "working");
    let stop = json!({ "taskId": long });
    let stopped = client.response("tasks/cancel", stop).await["result"].clone();
    assert_eq!(stopped["status"], "cancelled");

    // All tasks have ended and stay so; the session has a new handler.
    let _server = kill_and_start(server, &file);
    assert_eq!(result(&client, &done).await, rain);
    assert_eq!(result(&client, &again).await, snow);
    assert_eq!(result(&client, &lost).await, failed);
    assert_eq!(status(&client, &lost).await, unknown);
    assert_eq!(status(&client, &long).await, stopped);
    let params = json!({ "name": "render_report", "arguments": { "title": "Fog", "pages": 1 } });
    let plain = client.response("tools/call", params).await;
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
    let client = HttpClient::connect(server.address()).await;
    let done = promoted(&client, "render_report", "Rain", 20).await;
    let rain = settled(&client, &done).await;
    assert_eq!(rain["result"]["content"][0]["text"], "Rain: 20 pages");
    let again = promoted(&client, "render_report", "Snow", 20).await;
    let lost = promoted(&client, "delete_report", "Hail", 1).await;
    assert_eq!(settled(&client, &lost).await["status"], "input_required");

    let _server = kill_and_start(server, &file);
    assert_eq!(poll(&client, &done).await, rain);
    let unknown = poll(&client, &lost).await;
    assert_eq!(unknown["status"], "failed");
    let why = unknown["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    let snow = settled(&client, &again).await;
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
async fn task(client: &HttpClient, tool: &str, title: &str, pages: u32) -> String {
    let arguments = json!({ "title": title, "pages": pages });
    client.task(tool, arguments).await
}

async fn result(client: &HttpClient, task: &str) -> Value {
    client
        .response("tasks/result", json!({ "taskId": task }))
        .await
}

async fn status(client: &HttpClient, task: &str) -> Value {
    client.status(task).await["result"].clone()
}

async fn until(client: &HttpClient, task: &str, wanted: &str) {
    let reached = async || status(client, task).await["status"] == wanted;
    eventually(wanted, reached).await;
}

/// Calls a tool as a modern client does, and returns the task that the call becomes.
async fn promoted(client: &HttpClient, tool: &str, title: &str, pages: u32) -> String {
    let arguments = json!({ "title": title, "pages": pages });
    let params = json!({ "name": tool, "arguments": arguments });
    let created = modern(client, "tools/call", params).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

/// The response to a modern client with tasks and form elicitation.
async fn modern(client: &HttpClient, method: &str, params: Value) -> Value {
    let capabilities = json!({
        "elicitation": { "form": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    client.modern_response(method, params, capabilities).await
}

/// The status of a task for a modern client.
async fn poll(client: &HttpClient, task: &str) -> Value {
    let looked = modern(client, "tasks/get", json!({ "taskId": task })).await;
    looked["result"].clone()
}

/// A task of a modern client once it is not `working`.
async fn settled(client: &HttpClient, task: &str) -> Value {
    let mut now = Value::Null;
    let settled = async || {
        now = poll(client, task).await;
        now["status"] != "working"
    };
    eventually("the task settles", settled).await;
    now
}

/// A generous limit for the whole test.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
