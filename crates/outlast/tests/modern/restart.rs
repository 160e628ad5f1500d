//! A server that falls in the middle of every state of a task.

use serde_json::json;

use crate::harness::{Stage, named};
use crate::stdio_client::Pipe;

#[tokio::test]
async fn every_state_of_a_task_survives_a_fall_or_ends_in_words() {
    // V2-CREATE-5, V2-GET-11, V2-STATE-2, A2-27.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let working = pipe.task("gated").await;
    let harmless = pipe.task("harmless").await;
    let asking = pipe.task("ask").await;
    let (completed, failed) = (pipe.task("fails").await, pipe.task("broken").await);
    let completed_before = pipe.until(&completed, "completed").await;
    let failed_before = pipe.until(&failed, "failed").await;
    let cancelled = pipe.task("gated").await;
    pipe.call("tasks/cancel", json!({ "taskId": cancelled }))
        .await;
    let cancelled_before = pipe.until(&cancelled, "cancelled").await;
    assert_eq!(pipe.status(&asking).await["status"], "input_required");
    stage.fall().await;

    let stage = Stage::on_file(&file).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    // What has ended is as it was, byte for byte.
    assert_eq!(pipe.status(&completed).await, completed_before);
    assert_eq!(pipe.status(&failed).await, failed_before);
    assert_eq!(pipe.status(&cancelled).await, cancelled_before);
    // What may not run twice says so; nothing works for ever.
    for lost in [&working, &asking] {
        let lost = pipe.until(lost, "failed").await;
        let why = lost["error"]["message"].as_str().unwrap();
        assert!(why.contains("outcome is unknown"), "{why}");
        assert_eq!(lost["statusMessage"], lost["error"]["message"]);
    }
    let late = json!({ "taskId": asking, "inputResponses": { "any": named("Ada") } });
    let ack = pipe.call("tasks/update", late).await;
    assert_eq!(ack["result"]["resultType"], "complete");
    // What may run again does.
    assert_eq!(pipe.status(&harmless).await["status"], "working");
    stage.open_gate();
    let done = pipe.until(&harmless, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
    assert_eq!(stage.begun(), 0);
    stage.fall().await;
}
