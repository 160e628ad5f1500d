//! Which messages are sent on which stream.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn the_general_stream_never_carries_a_response() {
    // V1-SSE-7, V1-SSE-8.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("gated", json!({})).await;
    let waiting = client.result(&task).await;
    client.call("ping", json!({})).await;
    harness.gate.add_permits(1);
    let (_, received) = general.next_message("notifications/tasks/status").await;
    assert_eq!(received["params"]["taskId"], task);
    assert_eq!(received["params"]["status"], "completed");
    assert!({ waiting }.rest().await.pop().unwrap()["result"].is_object());
    general.silence().await;
}

#[tokio::test]
async fn no_two_events_of_a_session_have_the_same_id() {
    // V1-RESUME-1, V1-SSE-9.
    let harness = Harness::new().await;
    let client = harness.client().await;
    harness.gate.add_permits(12);
    let mut ids = BTreeSet::new();
    let mut general = client.listen(None).await;
    assert!(ids.insert(general.event().await.unwrap().id));
    for _ in 0..3 {
        let mut response = client.tool("steps", json!({})).await;
        while let Some(event) = response.event().await {
            assert!(event.id.is_some());
            assert!(ids.insert(event.id.clone()), "{event:?}");
        }
    }
    assert!(ids.len() >= 10, "{ids:?}");
}

#[tokio::test]
async fn task_notifications_survive_a_disconnect() {
    // S2-62, S2-98.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let seen = general.event().await.unwrap().id.unwrap();
    let task = client.task("gated", json!({})).await;
    general.disconnect().await;
    harness.gate.add_permits(1);
    client.until(&task, "completed").await;
    let mut again = client.listen(Some(&seen)).await;
    let (_, received) = again.next_message("notifications/tasks/status").await;
    assert_eq!(received["params"]["taskId"], task);
    assert_eq!(received["params"]["status"], "completed");
}

#[tokio::test]
async fn progress_reaches_a_wait_and_a_general_stream() {
    // V1-PROG-1, V1-PROG-4.
    let harness = Harness::new().await;
    let client = harness.client().await;
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
        harness.gate.add_permits(4);
        let (_, received) = stream.next_message("notifications/progress").await;
        assert_eq!(received["params"]["progressToken"], "mine");
        let related = &received["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], task);
        client.until(task, "completed").await;
        stream.disconnect().await;
    }
}

#[tokio::test]
async fn a_session_lives_as_long_as_its_tasks() {
    // S2-49, S2-101: the session is unused for much longer than its idle time.
    let harness =
        Harness::with(HttpOptions::default().with_session_idle_timeout(Duration::from_millis(1)))
            .await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    harness.gate.add_permits(1);
    client.until(&task, "completed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");
}
