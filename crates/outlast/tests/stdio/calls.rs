//! `tools/call` without a task.

use serde_json::json;

use crate::harness::StdioClient;

#[tokio::test(start_paused = true)]
async fn a_plain_call_returns_its_result() {
    let mut client = StdioClient::new().await;
    let response = client
        .call(
            "tools/call",
            json!({ "name": "echo", "arguments": { "say": "hi" } }),
        )
        .await;
    assert_eq!(response["result"]["content"][0]["text"], "hi");
    // S2-38: without related task.
    assert_eq!(response["result"].get("_meta"), None);
    assert_eq!(
        client.call("tasks/list", json!({})).await["result"]["tasks"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_are_protocol_errors_and_failures_are_results() {
    // V1-TLS-2.
    let mut client = StdioClient::new().await;
    let unknown = client
        .call("tools/call", json!({ "name": "unknown" }))
        .await;
    assert_eq!(unknown["error"]["code"], -32602);
    let failed = client.call("tools/call", json!({ "name": "fail" })).await;
    assert_eq!(failed["result"]["isError"], true);
    let nameless = client.call("tools/call", json!({})).await;
    assert_eq!(nameless["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn task_support_mismatches_are_rejected_before_anything_runs() {
    let mut client = StdioClient::new().await;
    // V1-TOOL-3, S2-91.
    let forbidden = client
        .call("tools/call", json!({ "name": "echo", "task": {} }))
        .await;
    assert_eq!(forbidden["error"]["code"], -32601);
    // V1-TOOL-6, S2-90.
    let required = client.call("tools/call", json!({ "name": "must" })).await;
    assert_eq!(required["error"]["code"], -32601);
    assert_eq!(
        client.call("tasks/list", json!({})).await["result"]["tasks"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn progress_precedes_the_response_with_its_token() {
    let mut client = StdioClient::new().await;
    let params = json!({ "name": "steps", "_meta": { "progressToken": "p-1" } });
    let id = client.send("tools/call", params).await;
    for step in 1..=3 {
        let notification = client.next().await;
        assert_eq!(notification["params"]["progressToken"], "p-1");
        assert_eq!(notification["params"]["progress"], f64::from(step));
    }
    assert_eq!(
        client.response_to(id).await["result"]["content"][0]["text"],
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_can_send_an_input_request() {
    let mut client = StdioClient::new().await;
    let id = client.send("tools/call", json!({ "name": "ask" })).await;
    let input_request = client.next_message("elicitation/create").await;
    assert_eq!(input_request["params"]["message"], "Who?");
    assert_eq!(input_request["params"].get("_meta"), None);
    client
        .respond(
            &input_request["id"],
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        )
        .await;
    assert_eq!(
        client.response_to(id).await["result"]["content"][0]["text"],
        "\"accept\": \"Ada\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_plain_call_stops_without_response() {
    // V1-CANC-3, S2-100.
    let mut client = StdioClient::new().await;
    let id = client
        .send("tools/call", json!({ "name": "endless" }))
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    assert_eq!(client.engine.running(), 1);
    client
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    client.silence().await;
    assert_eq!(client.engine.running(), 0);
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}
