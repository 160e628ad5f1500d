//! Streams that broke and go on.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;

use crate::harness::Stage;

#[tokio::test]
async fn a_stream_goes_on_after_the_event_that_was_seen_last() {
    // V1-RESUME-3, V1-RESUME-4.
    let stage = Stage::new().await;
    let client = stage.client().await;
    stage.gate.add_permits(2);
    let mut answer = client.tool("steps", json!({})).await;
    let (first, said) = answer.message().await.unwrap();
    assert_eq!(said["params"]["progress"], 1.0);
    drop(answer);
    // Another stream, whose events are no business of the first.
    let task = client.task("ask", json!({})).await;
    let mut other = client.result(&task).await;
    other.told("elicitation/create").await;
    stage.gate.add_permits(2);
    let mut again = client.listen(Some(&first)).await;
    let opening = again.event().await.unwrap();
    assert_eq!((opening.id, opening.message), (Some(first), None));
    let rest = again.rest().await;
    let steps: Vec<_> = rest
        .iter()
        .map(|said| &said["params"]["progress"])
        .collect();
    assert_eq!(steps[..2], [2.0, 3.0]);
    assert_eq!(rest[2]["result"]["content"][0]["text"], "arrived");
    assert_eq!(rest.len(), 3);
}

#[tokio::test]
async fn what_a_task_said_on_a_stream_that_broke_is_heard_when_it_goes_on() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut listening = client.listen(None).await;
    listening.event().await;
    let task = client.task("says", json!({})).await;
    // Once it is known as working, whatever it says is followed.
    client.until(&task, "working").await;
    stage.gate.add_permits(1);
    let (first, said) = listening.told("notifications/message").await;
    assert_eq!(said["params"]["data"], "one");
    stage.gate.add_permits(1);
    listening.told("notifications/message").await;
    // What came after the first message counts as unseen.
    drop(listening);
    let mut again = client.listen(Some(&first)).await;
    let (_, said) = again.told("notifications/message").await;
    assert_eq!(said["params"]["data"], "two");
    let related = &said["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": task }));
    stage.gate.add_permits(2);
    let (_, said) = again.told("notifications/message").await;
    assert_eq!(said["params"]["data"], "three");
}

#[tokio::test]
async fn a_wait_that_broke_before_a_word_can_be_taken_up() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    let mut waiting = client.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    drop(waiting);
    stage.gate.add_permits(1);
    client.until(&task, "completed").await;
    let mut again = client.listen(Some(&opening)).await;
    let rest = again.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["id"], 1);
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_question_that_came_up_while_the_wait_was_broken_is_put_when_it_goes_on() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    drop(waiting);
    client.until(&task, "input_required").await;
    let mut again = client.listen(Some(&opening)).await;
    let (_, question) = again.told("elicitation/create").await;
    client.respond(&question["id"], "Ada").await;
    let last = again.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn an_event_that_nobody_knows_opens_a_fresh_stream_that_tells_how_things_stand() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let open = client.task("gated", json!({})).await;
    let asks = client.task("ask", json!({})).await;
    client.until(&asks, "input_required").await;
    for unknown in ["1-1-1", "what?", "0-7"] {
        let mut fresh = client.listen(Some(unknown)).await;
        let mut shown = Vec::new();
        for _ in 0..2 {
            let (_, said) = fresh.told("notifications/tasks/status").await;
            shown.push((
                said["params"]["taskId"].clone(),
                said["params"]["status"].clone(),
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
        let (_, question) = fresh.told("elicitation/create").await;
        assert!(question["id"].as_str().unwrap().starts_with(&asks));
        drop(fresh);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn another_session_cannot_take_up_a_stream() {
    let stage = Stage::new().await;
    let (one, two) = (stage.client().await, stage.client().await);
    let task = one.task("gated", json!({})).await;
    let mut waiting = one.result(&task).await;
    let opening = waiting.event().await.unwrap().id.unwrap();
    let mut foreign = two.listen(Some(&opening)).await;
    foreign.event().await;
    stage.gate.add_permits(1);
    foreign.silence().await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}

#[tokio::test]
async fn a_stream_that_is_closed_in_the_middle_is_taken_up_for_the_answer() {
    // V1-SSE-2, V1-SSE-4.
    let options = HttpOptions {
        hold: Duration::from_millis(1),
        longest_stream: Some(Duration::from_millis(50)),
        ..HttpOptions::default()
    };
    let stage = Stage::with(options).await;
    let client = stage.client().await;
    let mut answer = client.tool("gated", json!({})).await;
    let opening = answer.event().await.unwrap().id.unwrap();
    assert_eq!(answer.event().await, None);
    stage.gate.add_permits(1);
    let mut again = client.listen(Some(&opening)).await;
    let last = again.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn a_change_is_told_on_the_stream_where_the_client_listens() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let uri = json!({ "uri": "test:one" });
    client.call("resources/subscribe", uri.clone()).await;
    let mut listening = client.listen(None).await;
    let seen = listening.event().await.unwrap().id.unwrap();
    stage.resources.updated("test:one");
    let (_, told) = listening.told("notifications/resources/updated").await;
    assert_eq!(told["params"], uri);
    drop(listening);
    let mut again = client.listen(Some(&seen)).await;
    again.told("notifications/resources/updated").await;
    // Whoever has left hears nothing more.
    assert_eq!(client.leave().await.status, 204);
    stage.resources.updated("test:one");
}
