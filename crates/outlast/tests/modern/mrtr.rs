//! Calls that return input requests as their response: multi round-trip requests (V2-MRTR).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Harness, name_response};
use crate::stdio_client::{StdioClient, no_tasks};

/// Calls a tool that requests input. Returns the `input_required` result.
async fn input_required(client: &mut StdioClient, tool: &str) -> Value {
    let input_required = client.tool(tool).await["result"].clone();
    assert_eq!(
        input_required["resultType"], "input_required",
        "{input_required}"
    );
    assert!(input_required["requestState"].is_string());
    input_required
}

fn key(input_required: &Value) -> String {
    let requests = input_required["inputRequests"].as_object().unwrap();
    requests.keys().next().unwrap().clone()
}

fn retry(tool: &str, input_required: &Value, response: Value) -> Value {
    json!({
        "name": tool,
        "requestState": input_required["requestState"],
        "inputResponses": { key(input_required): response },
    })
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_returns_input_requests_and_resumes_by_retry() {
    // V2-MRTR-1, V2-MRTR-2, V2-MRTR-3, V2-STDIO-2: the call runs once.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let input_required = input_required(&mut client, "plain").await;
    let request = &input_required["inputRequests"][key(&input_required)];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who?");
    let received = client
        .call(
            "tools/call",
            retry("plain", &input_required, name_response("Ada")),
        )
        .await;
    assert_eq!(received["result"]["resultType"], "complete");
    assert_eq!(received["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    assert_eq!(received["result"].get("requestState"), None);
    assert_eq!(harness.started_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_state_is_valid_once() {
    // V2-MRTR-5, BR-IN-4: a replay is rejected and runs nothing.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let input_required = input_required(&mut client, "plain").await;
    let retry = retry("plain", &input_required, name_response("Ada"));
    client.call("tools/call", retry.clone()).await;
    let replayed = client.call("tools/call", retry).await;
    assert_eq!(replayed["error"]["code"], -32602);
    let why = replayed["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    assert_eq!(harness.started_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_or_foreign_request_state_is_rejected() {
    // V2-MRTR-5: after the rejected retries the unchanged state is still accepted.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let input_required = input_required(&mut client, "plain").await;
    let good = retry("plain", &input_required, name_response("Ada"));
    let state = input_required["requestState"].as_str().unwrap();
    let (mut touched, mut other_tool, mut other_arguments) =
        (good.clone(), good.clone(), good.clone());
    touched["requestState"] = json!(format!("{state}-TAMPERED"));
    other_tool["name"] = json!("first");
    other_arguments["arguments"] = json!({ "sneaky": true });
    let mut odd = good.clone();
    odd["requestState"] = json!(7);
    for bad in [touched, other_tool, other_arguments, odd] {
        let rejected = client.call("tools/call", bad).await;
        assert_eq!(rejected["error"]["code"], -32602, "{rejected}");
    }
    let received = client.call("tools/call", good).await;
    assert_eq!(received["result"]["resultType"], "complete");
    assert_eq!(harness.started_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_call_without_retry_is_stopped() {
    // V2-MRTR-6, BR-IN-5.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let input_required = input_required(&mut client, "plain").await;
    assert_eq!(harness.engine.running(), 1);
    tokio::time::sleep(Duration::from_secs(16 * 60)).await;
    harness.until_idle().await;
    let late = client
        .call(
            "tools/call",
            retry("plain", &input_required, name_response("Ada")),
        )
        .await;
    assert_eq!(late["error"]["code"], -32602);
    assert_eq!(harness.started_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn missing_responses_are_requested_again_and_malformed_ones_rejected() {
    // V2-MRTR-10.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let first = input_required(&mut client, "plain").await;
    let malformed = retry("plain", &first, json!(12345));
    let rejected = client.call("tools/call", malformed).await;
    assert_eq!(rejected["error"]["code"], -32602);
    let nothing = json!({
        "name": "plain", "requestState": first["requestState"],
        "inputResponses": { "wrong": name_response("Ada") },
    });
    let again = client.call("tools/call", nothing).await["result"].clone();
    assert_eq!(again["resultType"], "input_required");
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    assert_ne!(again["requestState"], first["requestState"]);
    let mut response = retry("plain", &again, name_response("Ada"));
    response["inputResponses"]["extra"] = json!({ "action": "accept" });
    let received = client.call("tools/call", response).await;
    assert_eq!(received["result"]["resultType"], "complete");
    // The state of an earlier round is invalid.
    let replayed = client
        .call("tools/call", retry("plain", &first, name_response("Ada")))
        .await;
    assert_eq!(replayed["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn concurrent_input_requests_are_returned_together() {
    let mut client = StdioClient::connect(Harness::new().await.server);
    let params = json!({ "name": "two" });
    let input_required = client.call_with("tools/call", params, no_tasks()).await["result"].clone();
    let keys: Vec<_> = input_required["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys.len(), 2);
    let retry = json!({
        "name": "two", "requestState": input_required["requestState"],
        "inputResponses": { keys[0]: name_response("Ada"), keys[1]: name_response("Bob") },
    });
    let received = client.call_with("tools/call", retry, no_tasks()).await;
    assert_eq!(received["result"]["content"][0]["text"], "\"Ada\" \"Bob\"");
}

#[tokio::test(start_paused = true)]
async fn every_round_of_input_requests_has_a_new_state() {
    let mut client = StdioClient::connect(Harness::new().await.server);
    let params = json!({ "name": "again" });
    let one = client.call_with("tools/call", params, no_tasks()).await["result"].clone();
    let response = retry("again", &one, name_response("Ada"));
    let two = client.call_with("tools/call", response, no_tasks()).await["result"].clone();
    assert_eq!(two["resultType"], "input_required");
    assert_ne!(key(&one), key(&two));
    assert_ne!(one["requestState"], two["requestState"]);
    let response = retry("again", &two, name_response("Ada"));
    let done = client.call_with("tools/call", response, no_tasks()).await;
    assert_eq!(done["result"]["content"][0]["text"], "asked");
}

#[tokio::test(start_paused = true)]
async fn input_requests_before_the_work_precede_the_task() {
    // V2-CREATE-7: a client with task support also gets `input_required`. The call then ends within
    // the grace period, so the response is the result and there is no task.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let input_required = input_required(&mut client, "first").await;
    assert_eq!(key(&input_required), "who");
    let received = client
        .call(
            "tools/call",
            retry("first", &input_required, name_response("Ada")),
        )
        .await;
    assert_eq!(received["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_after_its_input() {
    // V2-CREATE-7, V2-CREATE-8, V2-UPD-17.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let input_required = input_required(&mut client, "first_then_task").await;
    let response = retry("first_then_task", &input_required, name_response("Ada"));
    let created = client.call("tools/call", response).await["result"].clone();
    assert_eq!(created["resultType"], "task");
    assert_eq!(created.get("requestState"), None);
    assert_eq!(created.get("inputRequests"), None);
    let task = created["taskId"].as_str().unwrap();
    let done = client.until(task, "completed").await;
    assert_eq!(done.get("requestState"), None);
    assert_eq!(done["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn an_input_response_may_precede_its_request() {
    // V2-MRTR-10: the unknown key `extra` is ignored.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let responses = json!({ "who": name_response("Ada"), "extra": 7 });
    let params = json!({ "name": "first", "inputResponses": responses });
    let received = client.call("tools/call", params).await;
    assert_eq!(received["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    let params = json!({ "name": "first", "inputResponses": { "who": 12345 } });
    assert_eq!(
        client.call("tools/call", params).await["error"]["code"],
        -32602
    );
    let params = json!({ "name": "first", "inputResponses": null });
    assert_eq!(
        client.call("tools/call", params).await["error"]["code"],
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn no_input_request_without_its_capability() {
    // V2-MRTR-4, V2-UPD-16.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let params = json!({ "name": "plain" });
    let can = json!({ "sampling": {} });
    let response = client.call_with("tools/call", params, can).await;
    assert_eq!(response["result"]["isError"], true);
    let why = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("does not support form elicitation"), "{why}");
}

#[tokio::test]
async fn a_suspended_call_is_not_run_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file).await;
    let mut client = StdioClient::connect(harness.server.clone());
    let input_required = input_required(&mut client, "plain").await;
    harness.stop().await;
    let harness = Harness::on_file(&file).await;
    let mut client = StdioClient::connect(harness.server.clone());
    let lost = client
        .call(
            "tools/call",
            retry("plain", &input_required, name_response("Ada")),
        )
        .await;
    assert_eq!(lost["error"]["code"], -32602);
    let why = lost["error"]["message"].as_str().unwrap();
    assert!(why.contains("outcome is unknown"), "{why}");
    assert_eq!(harness.started_calls(), 0);
    harness.stop().await;
}
