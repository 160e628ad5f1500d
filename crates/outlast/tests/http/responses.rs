//! The form of a response: JSON, a stream, or no content.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use outlast_testkit::eventually;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn an_immediate_response_is_json() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let response = client.tool("echo", json!({ "say": "hi" })).await;
    assert!(!response.is_stream());
    assert_eq!(response.json().await["result"]["content"][0]["text"], "hi");
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_call_with_progress_gets_a_stream() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    harness.gate.add_permits(4);
    let mut response = client.tool("steps", json!({})).await;
    assert!(response.is_stream());
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    assert_eq!(response.header("x-accel-buffering"), Some("no"));
    // V1-SSE-1: an event id before the first message.
    let first = response.event().await.unwrap();
    assert!(first.id.is_some() && first.message.is_none(), "{first:?}");
    let rest = response.rest().await;
    let steps: Vec<_> = rest
        .iter()
        .map(|received| &received["params"]["progress"])
        .collect();
    assert_eq!(steps[..3], [1, 2, 3]);
    assert_eq!(rest[3]["result"]["content"][0]["text"], "arrived");
}

#[tokio::test]
async fn a_slow_call_gets_a_stream_with_keep_alives() {
    let harness = Harness::with(
        HttpOptions::default()
            .with_stream_after(Duration::from_millis(20))
            .with_keep_alive_interval(Duration::from_millis(20)),
    )
    .await;
    let client = harness.client().await;
    let mut response = client.tool("gated", json!({})).await;
    assert!(response.is_stream());
    assert_eq!(response.event().await.unwrap().message, None);
    response.comment().await;
    response.comment().await;
    harness.gate.add_permits(1);
    let (_, last) = response.message().await.unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
    assert_eq!(response.event().await, None);
}

#[tokio::test]
async fn the_accept_header_selects_the_form() {
    let harness =
        Harness::with(HttpOptions::default().with_stream_after(Duration::from_millis(20))).await;
    let client = harness.client().await;
    let call = |id, tool| {
        let params = json!({ "name": tool, "arguments": { "say": "hi" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let echo = call(1, "echo").to_string();
    for any in ["", "*/*", "application/*"] {
        let response = client
            .send("POST", &[("accept", any)], echo.as_bytes())
            .await;
        assert_eq!(response.json().await["id"], 1);
    }
    let accept = [("accept", "text/event-stream")];
    let mut response = client.send("POST", &accept, echo.as_bytes()).await;
    assert!(response.is_stream());
    assert_eq!(response.rest().await[0]["id"], 1);
    // A client that takes no stream gets no progress, but the result.
    harness.gate.add_permits(4);
    let accept = [("accept", "application/json")];
    let steps = call(2, "steps").to_string();
    let response = client.send("POST", &accept, steps.as_bytes()).await;
    assert_eq!(response.json().await["id"], 2);
    let accept = [("accept", "image/png")];
    assert_eq!(
        client.send("POST", &accept, echo.as_bytes()).await.status,
        406
    );
    assert_eq!(client.send("GET", &accept, b"").await.status, 406);
}

#[tokio::test]
async fn tasks_get_and_available_results_are_json() {
    // A1-31.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    let mut waiting = client.result(&task).await;
    assert!(waiting.is_stream());
    harness.gate.add_permits(1);
    let rest = waiting.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
    assert_eq!(client.status(&task).await["result"]["status"], "completed");
    let again = client.result(&task).await;
    assert!(!again.is_stream());
    assert_eq!(again.json().await["result"], last["result"]);
}

#[tokio::test]
async fn a_cancelled_call_gets_no_response() {
    // V1-CANC-3.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.status }
    });
    eventually("the call runs", async || harness.engine.running() > 0).await;
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    assert_eq!(client.post(&cancelled).await.status, 202);
    assert_eq!(waiting.await.unwrap(), 202);
}

#[tokio::test]
async fn a_disconnect_does_not_cancel() {
    // V1-SSE-6.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    drop(client.result(&task).await);
    harness.gate.add_permits(1);
    client.until(&task, "completed").await;
}

#[tokio::test]
async fn older_versions_have_no_tasks_and_no_events_without_data() {
    let harness = Harness::new().await;
    for version in ["2025-06-18", "2025-03-26"] {
        let mut client = harness.client_without_session();
        let met = client.introduce(version).await;
        assert_eq!(met["protocolVersion"], version);
        assert_eq!(met["capabilities"].get("tasks"), None);
        let rejected = client.status("00000000000000000000000000").await;
        assert_eq!(rejected["error"]["code"], -32601);
        harness.gate.add_permits(4);
        let mut response = client.tool("steps", json!({})).await;
        let first = response.event().await.unwrap();
        assert!(first.message.is_some(), "{first:?}");
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let stated = [("mcp-protocol-version", version)];
        assert_eq!(client.send("POST", &stated, body).await.status, 200);
    }
}

#[tokio::test]
async fn concurrent_clients_are_isolated() {
    let harness = Harness::new().await;
    let (one, two) = tokio::join!(harness.client(), harness.client());
    assert_ne!(one.session, two.session);
    let (mine, theirs) = tokio::join!(one.task("ask", json!({})), two.task("ask", json!({})));
    let (mut of_one, mut of_two) = tokio::join!(one.listen(None), two.listen(None));
    let (_, first) = of_one.next_message("elicitation/create").await;
    let (_, second) = of_two.next_message("elicitation/create").await;
    let related = |received: &serde_json::Value| {
        received["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"].clone()
    };
    assert_eq!(related(&first), mine);
    assert_eq!(related(&second), theirs);
    assert_eq!(
        one.status(&theirs).await["error"]["message"],
        "Task not found"
    );
}
