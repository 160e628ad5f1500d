//! The rmcp server for clients of 2026-07-28, which have no sessions: a handler for each request.

use outlast_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{Harness, RmcpTestClient, text};

#[tokio::test(start_paused = true)]
async fn a_handler_serves_one_request_and_can_send_input_requests() {
    let mut harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    let answer = client
        .modern("tools/call", json!({ "name": "caller" }))
        .await;
    let seen: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(seen["name"], "by-hand");
    // A modern rmcp handler cannot send requests, so the handler gets the legacy version.
    assert_eq!(seen["version"], "2025-11-25");
    assert_eq!(
        seen["capabilities"],
        json!({ "elicitation": { "form": {} } })
    );
    harness.wait_for_report("dropped").await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_and_ends() {
    // V2-CREATE-1.
    let mut harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    let created = client
        .modern("tools/call", json!({ "name": "gated" }))
        .await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let task = created["result"]["taskId"].clone();
    harness.control.gate.add_permits(1);
    harness.wait_for_report("work ended").await;
    let done = until(&mut client, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_is_an_input_request_of_the_task() {
    // V2-GET-2, V2-UPD-9.
    let harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    let created = client
        .modern("tools/call", json!({ "name": "elicit" }))
        .await;
    let task = created["result"]["taskId"].clone();
    let waiting = until(&mut client, &task, "input_required").await;
    let asks = waiting["inputRequests"].as_object().unwrap();
    let (key, ask) = asks.iter().next().unwrap();
    assert_eq!(ask["method"], "elicitation/create");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let params = json!({ "taskId": task, "inputResponses": { key: answer } });
    client.modern("tasks/update", params).await;
    let done = until(&mut client, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], r#"Some("Ada")"#);
}

#[tokio::test(start_paused = true)]
async fn the_handler_serves_modern_prompts_and_lists() {
    let harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    let found = client.modern("server/discover", json!({})).await;
    let capabilities = &found["result"]["capabilities"];
    assert!(capabilities["prompts"].is_object(), "{found}");
    let tools = client.modern("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "echo");
    let prompt = client
        .modern("prompts/get", json!({ "name": "greet" }))
        .await;
    let said = &prompt["result"]["messages"][0]["content"]["text"];
    assert_eq!(said, "Greet you");
}

/// Polls until a task has this status.
async fn until(client: &mut RmcpTestClient, task: &Value, status: &str) -> Value {
    let mut now = Value::Null;
    let reached = async || {
        now = client.modern("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(now.get("error"), None);
        now["result"]["status"] == status
    };
    eventually(status, reached).await;
    now["result"].clone()
}
