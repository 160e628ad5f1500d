//! Input requests of a handler: each belongs to the call that sent it.

use serde_json::json;

use crate::harness::{Harness, RmcpTestClient, text};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn an_elicitation_belongs_to_the_task_that_sends_it() {
    // V1-INPUT-1, V1-INPUT-2, V1-INPUT-4.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("elicit").await;
    let request = client.next_message("elicitation/create").await;
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], task.as_str());
    assert_eq!(client.status(&task).await, "input_required");
    client.name(&request, "Ada").await;
    assert_eq!(text(&client.result(&task).await), r#"Some("Ada")"#);
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_get_their_own_input_responses() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(client.task("elicit").await);
    }
    for _ in &tasks {
        let request = client.next_message("elicitation/create").await;
        let of = request["params"]["_meta"][RELATED]["taskId"].as_str();
        let name = of.unwrap().to_owned();
        client.name(&request, &name).await;
    }
    for task in tasks {
        assert_eq!(text(&client.result(&task).await), format!("Some({task:?})"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_can_sample_and_list_roots_concurrently() {
    // V1-INPUT-8.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("sample and roots").await;
    let sample = client.next_message("sampling/createMessage").await;
    let roots = client.next_message("roots/list").await;
    let said = json!({
        "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m",
    });
    client.respond(&sample["id"], said).await;
    client
        .respond(&roots["id"], json!({ "roots": [{ "uri": "file:///a" }] }))
        .await;
    assert_eq!(text(&client.result(&task).await), "m 1");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_task_can_send_input_requests() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let id = client.send("tools/call", json!({ "name": "elicit" })).await;
    let request = client.next_message("elicitation/create").await;
    assert_eq!(request["params"]["_meta"].get(RELATED), None);
    client.name(&request, "Ada").await;
    assert_eq!(text(&client.response_to(id).await), r#"Some("Ada")"#);
}

#[tokio::test(start_paused = true)]
async fn an_unmarked_input_request_belongs_to_the_only_call() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("elicit apart").await;
    let request = client.next_message("elicitation/create").await;
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], task.as_str());
    client.name(&request, "Ada").await;
    assert_eq!(text(&client.result(&task).await), r#"Some("Ada")"#);

    let other = client.task("gated").await;
    harness.wait_for_report("at the gate").await;
    let refused = client.tool("elicit apart").await;
    assert!(refused.contains("several calls run"), "{refused}");
    harness.control.gate.add_permits(1);
    client.result(&other).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_capability_gets_no_input_request() {
    // V1-ELIC-2.
    let harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    client.initialize_legacy(json!({})).await;
    let said = client.tool("elicit").await;
    assert!(said.contains("does not support form elicitation"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_can_send_input_requests() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let id = client.send("prompts/get", json!({ "name": "ask" })).await;
    let request = client.next_message("elicitation/create").await;
    client.name(&request, "Ada").await;
    let answer = client.response_to(id).await;
    let said = &answer["result"]["messages"][0]["content"]["text"];
    assert_eq!(said, r#"Greet Some("Ada")"#);
}
