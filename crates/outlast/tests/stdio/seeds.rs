//! Requirements of seeds 002 and 003, where a single extra message would be wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast::task::Policy;
use outlast_testkit::within;
use serde_json::{Value, json};

use crate::harness::StdioClient;
use crate::tasks::create;

/// Asserts that no message arrives, and that none so far is a response to `id`.
async fn unanswered(client: &mut StdioClient, id: i64) {
    client.silence().await;
    while let Some(message) = client.early() {
        assert_ne!(message["id"], id, "{message}");
    }
}

/// Waits for a number of waiters, without advancing the paused clock.
async fn until_subscribers(client: &StdioClient, expected: impl Fn(usize) -> bool) {
    within("the expected number of waiters", async {
        while !expected(client.engine.subscribers()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn get(client: &mut StdioClient, task: &str) -> Value {
    client.call("tasks/get", json!({ "taskId": task })).await
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_gets_exactly_one_response() {
    // S2-19.
    let mut client = StdioClient::new().await;
    for tool in ["slow", "must", "fail"] {
        let id = client.send("tools/call", json!({ "name": tool })).await;
        let response = client.response_to(id).await;
        let rejected = tool == "must";
        assert_eq!(response.get("error").is_some(), rejected, "{response}");
        unanswered(&mut client, id).await;
    }
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_gets_no_response() {
    // S3-7.
    let mut client = StdioClient::new().await;
    let task = create(&mut client, "slow").await;
    let before = client.engine.subscribers();
    let waiting = client.send("tasks/result", json!({ "taskId": task })).await;
    until_subscribers(&client, |now| now > before).await;
    let given_up = json!({ "requestId": waiting });
    client.notify("notifications/cancelled", given_up).await;
    // The wait itself ends, not only its response.
    until_subscribers(&client, |now| now == before).await;
    // The task continues, and another wait gets its result.
    let result = client.call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["result"]["content"][0]["text"], "done");
    unanswered(&mut client, waiting).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_returns_the_result_of_its_tool_unchanged() {
    // S2-99.
    let mut client = StdioClient::new().await;
    let plain = client.call("tools/call", json!({ "name": "fail" })).await["result"].clone();
    let text = json!([{ "type": "text", "text": "it broke" }]);
    assert_eq!(
        (&plain["content"], &plain["isError"]),
        (&text, &json!(true))
    );
    let task = create(&mut client, "fail").await;
    let result = client.call("tasks/result", json!({ "taskId": task })).await;
    let mut expected = plain;
    expected["_meta"]["io.modelcontextprotocol/related-task"] = json!({ "taskId": task });
    assert_eq!(result["result"], expected);
    let status = get(&mut client, &task).await["result"]["status"].clone();
    assert_eq!(status, "failed");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_retained_until_its_ttl() {
    // S2-52, S2-55.
    let mut client = StdioClient::new().await;
    let task = create(&mut client, "endless").await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    tokio::time::sleep(Duration::from_secs(59)).await;
    let kept = get(&mut client, &task).await["result"]["status"].clone();
    assert_eq!(kept, "cancelled");
    tokio::time::sleep(Duration::from_secs(2)).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let gone = client.call(method, json!({ "taskId": task })).await;
        let error = json!({ "code": -32602, "message": "Task not found" });
        assert_eq!(gone["error"], error, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_ttl_differs_from_the_cap() {
    // S2-57.
    let mut client = StdioClient::with(
        Policy::default()
            .with_default_ttl(Duration::from_millis(5_000))
            .with_max_ttl(Duration::from_millis(600_000)),
    )
    .await;
    for (wish, granted) in [(json!({}), 5_000), (json!({ "ttl": 700_000 }), 600_000)] {
        let params = json!({ "name": "endless", "task": wish });
        let made = client.call("tools/call", params).await["result"]["task"].clone();
        assert_eq!(made["ttl"], granted);
        let task = made["taskId"].as_str().unwrap();
        assert_eq!(get(&mut client, task).await["result"]["ttl"], granted);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_an_ended_task_names_its_status() {
    // S0-60, V1-CANCEL-1.
    let mut client = StdioClient::new().await;
    for (tool, status) in [("slow", "completed"), ("fail", "failed")] {
        let task = create(&mut client, tool).await;
        client.call("tasks/result", json!({ "taskId": task })).await;
        refuses_cancel(&mut client, &task, status).await;
    }
    let task = create(&mut client, "endless").await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    refuses_cancel(&mut client, &task, "cancelled").await;
    let result = client.call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["error"]["message"], "Task cancelled");
}

async fn refuses_cancel(client: &mut StdioClient, task: &str, status: &str) {
    let rejected = client.call("tasks/cancel", json!({ "taskId": task })).await;
    let message = format!("Cannot cancel task: already in terminal status '{status}'");
    let error = json!({ "code": -32602, "message": message });
    assert_eq!(rejected["error"], error);
}

#[tokio::test(start_paused = true)]
async fn the_list_has_full_pages_and_a_last_one() {
    // S2-41, S2-94.
    let mut client = StdioClient::new().await;
    for _ in 0..120 {
        let task = create(&mut client, "fail").await;
        client.call("tasks/result", json!({ "taskId": task })).await;
    }
    let (mut sizes, mut ids, mut params) = (Vec::new(), BTreeSet::new(), json!({}));
    loop {
        let page = client.call("tasks/list", params).await["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        sizes.push(tasks.len());
        ids.extend(tasks.iter().map(|task| task["taskId"].to_string()));
        let Some(cursor) = page.get("nextCursor") else {
            break;
        };
        // The cursor is opaque: it contains no id.
        let text = cursor.as_str().unwrap();
        assert!(!ids.iter().any(|id| text.contains(id.trim_matches('"'))));
        params = json!({ "cursor": cursor });
    }
    assert_eq!(sizes, [50, 50, 20]);
    assert_eq!(ids.len(), 120);
}
