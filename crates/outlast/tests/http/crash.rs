//! A real server on a real file, killed as `kill -9` does, and a client that goes on as if nothing had happened.

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

/// Kills the server, and starts it again on the same file and the same port.
fn kill_and_start(server: ServerProcess, file: &Path) -> ServerProcess {
    let address = server.address().to_string();
    server.kill();
    start(file, &address)
}

async fn answer(client: &HttpClient, question: &Value, result: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(client.post(&answer).await.status, 202);
}

#[tokio::test]
async fn a_session_goes_on_without_an_introduction_however_often_its_server_is_killed() {
    // P1 to P5 of the promises, as an HTTP client sees them.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let server = start(&file, "127.0.0.1:0");
    let client = HttpClient::meet(server.address()).await;
    let long = json!({ "data": "long", "durationSeconds": 3_600 });
    let short = json!({ "data": "short", "durationSeconds": 1 });

    // Killed while tasks are working.
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
    // What must not run twice has ended, and says why.
    let lost = client.status(&once).await["result"].clone();
    assert_eq!(lost["status"], "failed");
    let why = lost["statusMessage"].as_str().unwrap();
    assert!(why.contains("unknown"), "{why}");

    // Killed while a task waits for an answer, with its question on a stream.
    let asks = client
        .task("confirm_and_sample", json!({ "topic": "tides" }))
        .await;
    let mut general = client.listen(None).await;
    let (seen, _) = general.told("elicitation/create").await;
    client.until(&asks, "input_required").await;
    let server = kill_and_start(server, &file);
    // What was sent before arrives, and then the end.
    general.rest().await;
    // The event is of another life: the client learns how things stand, and is asked.
    let mut general = client.listen(Some(&seen)).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let (_, said) = general.told("notifications/tasks/status").await;
        open.push(said["params"]["taskId"].as_str().unwrap().to_owned());
    }
    open.sort();
    let mut expected = [works.clone(), asks.clone()];
    expected.sort();
    assert_eq!(open, expected);
    let (_, question) = general.told("elicitation/create").await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    answer(&client, &question, yes).await;
    let (_, question) = general.told("sampling/createMessage").await;
    let line = json!({
        "role": "assistant", "model": "none", "content": { "type": "text", "text": "To and fro." },
    });
    answer(&client, &question, line).await;
    client.until(&asks, "completed").await;
    let written = client.result(&asks).await.json().await;
    assert_eq!(written["result"]["content"][0]["text"], "To and fro.");

    let stop = json!({ "taskId": works });
    let stopped = client.call("tasks/cancel", stop).await["result"].clone();
    assert_eq!(stopped["status"], "cancelled");

    // Killed after the end: what has ended has ended.
    let server = kill_and_start(server, &file);
    assert_eq!(client.result(&asks).await.json().await, written);
    assert_eq!(client.status(&once).await["result"], lost);
    assert_eq!(client.status(&works).await["result"], stopped);
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 4);
    assert_eq!(client.leave().await.status, 204);
    let _server = kill_and_start(server, &file);
    assert_eq!(client.ask("ping", json!({})).await.status, 404);
}
