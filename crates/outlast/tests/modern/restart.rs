//! A restart in every state of a task.

use serde_json::json;

use crate::harness::{Harness, name_response};
use crate::stdio_client::StdioClient;

#[tokio::test]
async fn every_task_survives_a_restart_or_fails_with_a_reason() {
    // V2-CREATE-5, V2-GET-11, V2-STATE-2, A2-27.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file).await;
    let mut client = StdioClient::connect(harness.server.clone());
    let working = client.task("gated").await;
    let harmless = client.task("harmless").await;
    let asking = client.task("ask").await;
    let (completed, failed) = (client.task("fails").await, client.task("broken").await);
    let completed_before = client.until(&completed, "completed").await;
    let failed_before = client.until(&failed, "failed").await;
    let cancelled = client.task("gated").await;
    client
        .call("tasks/cancel", json!({ "taskId": cancelled }))
        .await;
    let cancelled_before = client.until(&cancelled, "cancelled").await;
    assert_eq!(client.status(&asking).await["status"], "input_required");
    harness.stop().await;

    let harness = Harness::on_file(&file).await;
    let mut client = StdioClient::connect(harness.server.clone());
    // Ended tasks are unchanged, byte for byte.
    assert_eq!(client.status(&completed).await, completed_before);
    assert_eq!(client.status(&failed).await, failed_before);
    assert_eq!(client.status(&cancelled).await, cancelled_before);
    // A call that must not run twice fails with the reason. No task stays working.
    for lost in [&working, &asking] {
        let lost = client.until(lost, "failed").await;
        let why = lost["error"]["message"].as_str().unwrap();
        assert!(why.contains("outcome is unknown"), "{why}");
        assert_eq!(lost["statusMessage"], lost["error"]["message"]);
    }
    let late = json!({ "taskId": asking, "inputResponses": { "any": name_response("Ada") } });
    let ack = client.call("tasks/update", late).await;
    assert_eq!(ack["result"]["resultType"], "complete");
    // A call that may run again does.
    assert_eq!(client.status(&harmless).await["status"], "working");
    harness.open_gate();
    let done = client.until(&harmless, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
    assert_eq!(harness.started_calls(), 0);
    harness.stop().await;
}
