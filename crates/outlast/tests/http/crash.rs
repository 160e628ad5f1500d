//! A real server on a real file, killed with SIGKILL, and a client that continues its session.

use std::path::Path;

use outlast_testkit::ServerProcess;
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};

/// Starts the samples on `file`, listening at `address`.
fn start(file: &Path, address: &str) -> ServerProcess {
    ServerProcess::example(
        "samples",
        &["--store", file.to_str().unwrap(), "--http", address],
    )
}

/// Kills the server, and restarts it on the same file and port.
fn kill_and_start(server: ServerProcess, file: &Path) -> ServerProcess {
    let address = server.address().to_string();
    server.kill();
    start(file, &address)
}

async fn respond(client: &HttpClient, input_request: &Value, result: Value) {
    let response = json!({ "jsonrpc": "2.0", "id": input_request["id"], "result": result });
    assert_eq!(client.post(&response).await.status, 202);
}

#[tokio::test]
async fn a_session_continues_after_every_kill_of_its_server() {
    // P1 to P5 of docs/promises.md, as an HTTP client sees them.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let server = start(&file, "127.0.0.1:0");
    let client = HttpClient::connect(server.address()).await;
    let long = json!({ "data": "long", "durationSeconds": 3_600 });
    let short = json!({ "data": "short", "durationSeconds": 1 });

    // Kill while tasks are working.
    let works = client.task("LongRunningAnalysis", long).await;
    let soon = client.task("LongRunningAnalysis", short).await;
    let once = client
        .task("long_running_task", json!({ "duration": 3_600 }))
        .await;
    assert_eq!(client.status(&works).await["result"]["status"], "working");
    let server = kill_and_start(server, &file);
    assert_eq!(client.status(&works).await["result"]["status"], "working");
    let mut waiting = client.result(&soon).await;
    assert!(waiting.is_stream());
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(
        last["result"]["content"][0]["text"],
        "Analysis complete for: short"
    );
    // A call that must not run twice has failed, with the reason.
    let lost = client.status(&once).await["result"].clone();
    assert_eq!(lost["status"], "failed");
    let why = lost["statusMessage"].as_str().unwrap();
    assert!(why.contains("unknown"), "{why}");

    // Kill while a task waits for an input response, with its request on a stream.
    let asks = client
        .task("confirm_and_sample", json!({ "topic": "tides" }))
        .await;
    let mut general = client.listen(None).await;
    let (seen, _) = general.next_message("elicitation/create").await;
    client.until(&asks, "input_required").await;
    let server = kill_and_start(server, &file);
    // Events from before the kill arrive, then the stream ends.
    general.rest().await;
    // The event id is from before the restart: the client gets the status of open tasks and the
    // input request.
    let mut general = client.listen(Some(&seen)).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let (_, received) = general.next_message("notifications/tasks/status").await;
        open.push(received["params"]["taskId"].as_str().unwrap().to_owned());
    }
    open.sort();
    let mut expected = [works.clone(), asks.clone()];
    expected.sort();
    assert_eq!(open, expected);
    let (_, input_request) = general.next_message("elicitation/create").await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    respond(&client, &input_request, yes).await;
    let (_, input_request) = general.next_message("sampling/createMessage").await;
    let line = json!({
        "role": "assistant", "model": "none", "content": { "type": "text", "text": "To and fro." },
    });
    respond(&client, &input_request, line).await;
    client.until(&asks, "completed").await;
    let written = client.result(&asks).await.json().await;
    assert_eq!(written["result"]["content"][0]["text"], "To and fro.");

    let stop = json!({ "taskId": works });
    let stopped = client.call("tasks/cancel", stop).await["result"].clone();
    assert_eq!(stopped["status"], "cancelled");

    // Kill after the end: ended tasks are unchanged.
    let server = kill_and_start(server, &file);
    assert_eq!(client.result(&asks).await.json().await, written);
    assert_eq!(client.status(&once).await["result"], lost);
    assert_eq!(client.status(&works).await["result"], stopped);
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 4);
    assert_eq!(client.delete_session().await.status, 204);
    let _server = kill_and_start(server, &file);
    assert_eq!(client.request("ping", json!({})).await.status, 404);
}
