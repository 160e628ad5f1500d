//! Questions of tasks: on which stream they travel, and that they arrive.

use serde_json::json;

use crate::harness::Stage;

#[tokio::test]
async fn a_question_travels_on_the_stream_that_waits_for_the_task() {
    // V1-SSE-5, V1-INPUT-2.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    assert!(waiting.is_stream());
    let (_, question) = waiting.told("elicitation/create").await;
    let meta = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(meta["taskId"], task);
    client.respond(&question["id"], "Ada").await;
    let rest = waiting.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn a_question_travels_on_the_general_stream_where_nobody_waits() {
    // A1-4.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("ask", json!({})).await;
    let (_, question) = general.told("elicitation/create").await;
    client.respond(&question["id"], "Bob").await;
    client.until(&task, "completed").await;
    let answer = client.result(&task).await.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, \"Bob\"!");
}

#[tokio::test]
async fn a_question_waits_for_a_stream() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    client.until(&task, "input_required").await;
    let mut general = client.listen(None).await;
    let (_, question) = general.told("elicitation/create").await;
    client.respond(&question["id"], "Eve").await;
    client.until(&task, "completed").await;
}

#[tokio::test]
async fn a_question_on_a_stream_that_broke_is_asked_again_under_its_id() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    let mut waiting = client.result(&task).await;
    let (_, question) = waiting.told("elicitation/create").await;
    drop(waiting);
    settle().await;
    let mut general = client.listen(None).await;
    let (_, again) = general.told("elicitation/create").await;
    assert_eq!(again, question);
    drop(general);
    settle().await;
    let mut waiting = client.result(&task).await;
    let (_, again) = waiting.told("elicitation/create").await;
    assert_eq!(again, question);
    client.respond(&again["id"], "Kim").await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}

#[tokio::test]
async fn a_question_is_on_one_stream_only() {
    // V1-SSE-10.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut one = client.listen(None).await;
    let mut two = client.listen(None).await;
    one.event().await;
    two.event().await;
    let task = client.task("ask", json!({})).await;
    let (_, question) = two.told("elicitation/create").await;
    one.silence().await;
    client.respond(&question["id"], "Lee").await;
    client.until(&task, "completed").await;
}

/// A closed connection is noticed at the other end.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
}
