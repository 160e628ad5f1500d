//! What travels on which stream.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;

use crate::harness::Stage;

#[tokio::test]
async fn the_general_stream_carries_news_and_never_an_answer() {
    // V1-SSE-7, V1-SSE-8.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("gated", json!({})).await;
    let waiting = client.result(&task).await;
    client.call("ping", json!({})).await;
    stage.gate.add_permits(1);
    let (_, said) = general.told("notifications/tasks/status").await;
    assert_eq!(said["params"]["taskId"], task);
    assert_eq!(said["params"]["status"], "completed");
    assert!({ waiting }.rest().await.pop().unwrap()["result"].is_object());
    general.silence().await;
}

#[tokio::test]
async fn no_two_events_of_a_session_have_the_same_id() {
    // V1-RESUME-1, V1-SSE-9.
    let stage = Stage::new().await;
    let client = stage.client().await;
    stage.gate.add_permits(12);
    let mut ids = BTreeSet::new();
    let mut general = client.listen(None).await;
    assert!(ids.insert(general.event().await.unwrap().id));
    for _ in 0..3 {
        let mut answer = client.tool("steps", json!({})).await;
        while let Some(event) = answer.event().await {
            assert!(event.id.is_some());
            assert!(ids.insert(event.id.clone()), "{event:?}");
        }
    }
    assert!(ids.len() >= 10, "{ids:?}");
}

#[tokio::test]
async fn news_of_a_task_survive_a_broken_stream() {
    // S2-62, S2-98.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut general = client.listen(None).await;
    let seen = general.event().await.unwrap().id.unwrap();
    let task = client.task("gated", json!({})).await;
    drop(general);
    // The other end notices.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.gate.add_permits(1);
    client.until(&task, "completed").await;
    let mut again = client.listen(Some(&seen)).await;
    let (_, said) = again.told("notifications/tasks/status").await;
    assert_eq!(said["params"]["taskId"], task);
    assert_eq!(said["params"]["status"], "completed");
}

#[tokio::test]
async fn progress_of_a_task_reaches_one_who_waits_and_one_who_listens() {
    // V1-PROG-1, V1-PROG-4.
    let stage = Stage::new().await;
    let client = stage.client().await;
    for listens in [true, false] {
        let params = json!({
            "name": "steps", "task": {}, "_meta": { "progressToken": "mine" },
        });
        let created = client.call("tools/call", params).await;
        let task = created["result"]["task"]["taskId"].as_str().unwrap();
        let mut stream = if listens {
            client.listen(None).await
        } else {
            client.result(task).await
        };
        stream.event().await;
        stage.gate.add_permits(4);
        let (_, said) = stream.told("notifications/progress").await;
        assert_eq!(said["params"]["progressToken"], "mine");
        let related = &said["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], task);
        client.until(task, "completed").await;
        drop(stream);
        // The other end notices.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_session_lives_as_long_as_its_tasks() {
    // S2-49, S2-101: nobody has used it for much longer than it is kept idle.
    let stage = Stage::with(HttpOptions {
        idle: Duration::from_millis(1),
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    stage.gate.add_permits(1);
    client.until(&task, "completed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");
}
