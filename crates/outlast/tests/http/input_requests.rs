//! Input requests of tasks: on which stream they are sent.

use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn input_requests_are_sent_on_the_tasks_result_stream() {
    // V1-SSE-5, V1-INPUT-2.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    assert!(waiting.is_stream());
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    let meta = &input_request["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(meta["taskId"], task);
    client.respond(&input_request["id"], "Ada").await;
    let rest = waiting.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn without_a_wait_an_input_request_uses_the_general_stream() {
    // A1-4.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("ask", json!({})).await;
    let (_, input_request) = general.next_message("elicitation/create").await;
    client.respond(&input_request["id"], "Bob").await;
    client.until(&task, "completed").await;
    let response = client.result(&task).await.json().await;
    assert_eq!(response["result"]["content"][0]["text"], "Hello, \"Bob\"!");
}

#[tokio::test]
async fn an_input_request_waits_for_a_stream() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    client.until(&task, "input_required").await;
    let mut general = client.listen(None).await;
    let (_, input_request) = general.next_message("elicitation/create").await;
    client.respond(&input_request["id"], "Eve").await;
    client.until(&task, "completed").await;
}

#[tokio::test]
async fn after_a_disconnect_an_input_request_keeps_its_id() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    waiting.disconnect().await;
    let mut general = client.listen(None).await;
    let (_, again) = general.next_message("elicitation/create").await;
    assert_eq!(again, input_request);
    general.disconnect().await;
    let mut waiting = client.result(&task).await;
    let (_, again) = waiting.next_message("elicitation/create").await;
    assert_eq!(again, input_request);
    client.respond(&again["id"], "Kim").await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}

#[tokio::test]
async fn an_input_request_is_sent_on_one_stream_only() {
    // V1-SSE-10.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut one = client.listen(None).await;
    let mut two = client.listen(None).await;
    one.event().await;
    two.event().await;
    let task = client.task("ask", json!({})).await;
    let (_, input_request) = two.next_message("elicitation/create").await;
    one.silence().await;
    client.respond(&input_request["id"], "Lee").await;
    client.until(&task, "completed").await;
}
