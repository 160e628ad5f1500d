//! Input requests of tasks.

use std::sync::Arc;
use std::time::Duration;

use outlast::store::MemoryStore;
use serde_json::json;

use crate::harness::{StdioClient, samples};
use crate::tasks::create;

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn an_input_response_continues_the_named_task() {
    // V1-INPUT-1, V1-INPUT-2, V1-INPUT-4, V1-INPUT-10: without any `tasks/result`.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "ask").await;
    let input_request = client.next_message("elicitation/create").await;
    assert_eq!(
        input_request["params"]["_meta"][RELATED]["taskId"],
        id.as_str()
    );
    let waiting = client.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(waiting["result"]["status"], "input_required");
    client
        .respond(
            &input_request["id"],
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        )
        .await;
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(
        response["result"]["content"][0]["text"],
        "\"accept\": \"Ada\""
    );
    let mut words = Vec::new();
    for _ in 0..3 {
        let notification = client.next_message("notifications/tasks/status").await;
        words.push(
            notification["params"]["status"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(words, ["input_required", "working", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn an_input_request_is_sent_once_to_several_waits() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "ask").await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(client.send("tasks/result", json!({ "taskId": id })).await);
    }
    let input_request = client.next_message("elicitation/create").await;
    client
        .respond(&input_request["id"], json!({ "action": "decline" }))
        .await;
    for wait in waits {
        assert!(client.response_to(wait).await.get("result").is_some());
    }
    client.silence().await;
    let mut announced = 0;
    while let Some(message) = client.early() {
        assert_ne!(message["method"], "elicitation/create");
        announced += usize::from(message["method"] == "notifications/tasks/status");
    }
    assert_eq!(announced, 3);
}

#[tokio::test(start_paused = true)]
async fn a_task_needs_responses_to_all_input_requests() {
    // V1-INPUT-8.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "sample").await;
    let sample = client.next_message("sampling/createMessage").await;
    let roots = client.next_message("roots/list").await;
    let result =
        json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" });
    client.respond(&sample["id"], result).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let waiting = client.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(waiting["result"]["status"], "input_required");
    client.respond(&roots["id"], json!({ "roots": [] })).await;
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["content"][0]["text"], "\"m\" []");
}

#[tokio::test(start_paused = true)]
async fn an_error_is_an_input_response() {
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "ask").await;
    let input_request = client.next_message("elicitation/create").await;
    let error = json!({ "code": -1, "message": "no" });
    client
        .write(json!({ "jsonrpc": "2.0", "id": input_request["id"], "error": error }))
        .await;
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn no_input_request_without_its_capability() {
    // V1-ELIC-2.
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), samples()).await;
    client.introduce("2025-11-25", json!({})).await;
    let id = create(&mut client, "ask").await;
    let response = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(response["result"]["isError"], true);
    let received = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        received.contains("does not support form elicitation"),
        "{received}"
    );
}

#[tokio::test(start_paused = true)]
async fn late_and_foreign_input_responses_are_ignored() {
    // V1-INPUT-11.
    let mut client = StdioClient::new().await;
    let id = create(&mut client, "ask").await;
    let input_request = client.next_message("elicitation/create").await;
    client.call("tasks/cancel", json!({ "taskId": id })).await;
    client
        .respond(
            &input_request["id"],
            json!({ "action": "accept", "content": {} }),
        )
        .await;
    client
        .respond(&json!("00000000000000000000000000.x"), json!({}))
        .await;
    client.respond(&json!(77), json!({})).await;
    let task = client.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["result"]["status"], "cancelled");
}
