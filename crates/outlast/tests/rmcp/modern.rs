//! The same server for clients of 2026-07-28, which have no sessions: a handler for each request.

use outlast_testkit::eventually;
use serde_json::{Value, json};

use crate::client::{Client, Stage, text};

#[tokio::test(start_paused = true)]
async fn a_handler_answers_one_request_and_sees_a_client_it_can_ask() {
    let mut stage = Stage::new().await;
    let mut client = Client::connect(stage.front.clone());
    let answer = client
        .modern("tools/call", json!({ "name": "caller" }))
        .await;
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(told["name"], "by-hand");
    // In the other era rmcp lets no handler ask: to the handler it is the one before.
    assert_eq!(told["version"], "2025-11-25");
    assert_eq!(
        told["capabilities"],
        json!({ "elicitation": { "form": {} } })
    );
    stage.hear("dropped").await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_and_ends() {
    // V2-CREATE-1.
    let mut stage = Stage::new().await;
    let mut client = Client::connect(stage.front.clone());
    let created = client
        .modern("tools/call", json!({ "name": "gated" }))
        .await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let task = created["result"]["taskId"].clone();
    stage.equipment.gate.add_permits(1);
    stage.hear("work ended").await;
    let done = until(&mut client, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "through");
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_is_an_input_request_of_the_task() {
    // V2-GET-2, V2-UPD-9.
    let stage = Stage::new().await;
    let mut client = Client::connect(stage.front.clone());
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
async fn prompts_and_lists_are_the_handlers_in_this_era_too() {
    let stage = Stage::new().await;
    let mut client = Client::connect(stage.front.clone());
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

/// Looks until a task has this status.
async fn until(client: &mut Client, task: &Value, status: &str) -> Value {
    let mut now = Value::Null;
    let reached = async || {
        now = client.modern("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(now.get("error"), None);
        now["result"]["status"] == status
    };
    eventually(status, reached).await;
    now["result"].clone()
}
