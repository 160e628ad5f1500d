//! Streams that are resumed after a disconnect.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn a_stream_resumes_after_the_last_seen_event() {
    // V1-RESUME-3, V1-RESUME-4.
    let harness = Harness::new().await;
    let client = harness.client().await;
    harness.gate.add_permits(2);
    let mut response = client.tool("steps", json!({})).await;
    let (first, received) = response.message().await.unwrap();
    assert_eq!(received["params"]["progress"], 1.0);
    drop(response);
    // Events of another stream are not replayed.
    let task = client.task("ask", json!({})).await;
    let mut other = client.result(&task).await;
    other.next_message("elicitation/create").await;
    harness.gate.add_permits(2);
    let mut again = client.listen(Some(&first)).await;
    let opening = again.event().await.unwrap();
    assert_eq!((opening.id, opening.message), (Some(first), None));
    let rest = again.rest().await;
    let steps: Vec<_> = rest
        .iter()
        .map(|received| &received["params"]["progress"])
        .collect();
    assert_eq!(steps[..2], [2.0, 3.0]);
    assert_eq!(rest[2]["result"]["content"][0]["text"], "arrived");
    assert_eq!(rest.len(), 3);
}

#[tokio::test]
async fn log_messages_of_a_task_are_replayed() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut listening = client.listen(None).await;
    listening.event().await;
    let task = client.task("says", json!({})).await;
    // Once the task is working, its session follows it.
    client.until(&task, "working").await;
    harness.gate.add_permits(1);
    let (first, received) = listening.next_message("notifications/message").await;
    assert_eq!(received["params"]["data"], "one");
    harness.gate.add_permits(1);
    listening.next_message("notifications/message").await;
    // The client has acknowledged the first message only.
    drop(listening);
    let mut again = client.listen(Some(&first)).await;
    let (_, received) = again.next_message("notifications/message").await;
    assert_eq!(received["params"]["data"], "two");
    let related = &received["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": task }));
    harness.gate.add_permits(2);
    let (_, received) = again.next_message("notifications/message").await;
    assert_eq!(received["params"]["data"], "three");
}

#[tokio::test]
async fn a_wait_can_be_resumed_before_its_first_message() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    let mut waiting = client.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    drop(waiting);
    harness.gate.add_permits(1);
    client.until(&task, "completed").await;
    let mut again = client.listen(Some(&opening)).await;
    let rest = again.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["id"], 1);
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_resumed_wait_gets_the_missed_input_request() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    drop(waiting);
    client.until(&task, "input_required").await;
    let mut again = client.listen(Some(&opening)).await;
    let (_, input_request) = again.next_message("elicitation/create").await;
    client.respond(&input_request["id"], "Ada").await;
    let last = again.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn an_unknown_event_id_opens_a_stream_with_open_tasks() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let open = client.task("gated", json!({})).await;
    let asks = client.task("ask", json!({})).await;
    client.until(&asks, "input_required").await;
    for unknown in ["1-1-1", "what?", "0-7"] {
        let mut fresh = client.listen(Some(unknown)).await;
        let mut shown = Vec::new();
        for _ in 0..2 {
            let (_, received) = fresh.next_message("notifications/tasks/status").await;
            shown.push((
                received["params"]["taskId"].clone(),
                received["params"]["status"].clone(),
            ));
        }
        assert!(
            shown.contains(&(json!(open), json!("working"))),
            "{shown:?}"
        );
        assert!(
            shown.contains(&(json!(asks), json!("input_required"))),
            "{shown:?}"
        );
        let (_, input_request) = fresh.next_message("elicitation/create").await;
        assert!(input_request["id"].as_str().unwrap().starts_with(&asks));
        fresh.disconnect().await;
    }
}

#[tokio::test]
async fn another_session_cannot_resume_a_stream() {
    let harness = Harness::new().await;
    let (one, two) = (harness.client().await, harness.client().await);
    let task = one.task("gated", json!({})).await;
    let mut waiting = one.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    let mut foreign = two.listen(Some(&opening)).await;
    foreign.event().await;
    harness.gate.add_permits(1);
    foreign.silence().await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}

#[tokio::test]
async fn a_response_is_resumed_after_the_server_closed_its_stream() {
    // V1-SSE-2, V1-SSE-4.
    let options = HttpOptions::default()
        .with_stream_after(Duration::from_millis(1))
        .with_max_stream_duration(Duration::from_millis(50));
    let harness = Harness::with(options).await;
    let client = harness.client().await;
    let mut response = client.tool("gated", json!({})).await;
    let opening = response.event().await.unwrap().id.unwrap();
    assert_eq!(response.event().await, None);
    harness.gate.add_permits(1);
    let mut again = client.listen(Some(&opening)).await;
    let last = again.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_change_is_sent_on_the_general_stream() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let uri = json!({ "uri": "test:one" });
    client.call("resources/subscribe", uri.clone()).await;
    let mut listening = client.listen(None).await;
    let seen = listening.event().await.unwrap().id.unwrap();
    harness.resources.updated("test:one");
    let (_, notification) = listening
        .next_message("notifications/resources/updated")
        .await;
    assert_eq!(notification["params"], uri);
    drop(listening);
    let mut again = client.listen(Some(&seen)).await;
    again.next_message("notifications/resources/updated").await;
    // An ended session receives nothing.
    assert_eq!(client.delete_session().await.status, 204);
    harness.resources.updated("test:one");
}
