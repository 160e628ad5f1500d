//! Slow responses over HTTP: the messages before them, and the effect of a closed stream.

use outlast_testkit::eventually;
use serde_json::json;

use crate::harness::Harness;
use crate::http_client::{ModernHttpClient, next, serve_http};
use crate::stdio_client::no_tasks;

#[tokio::test]
async fn progress_precedes_the_response_on_its_stream() {
    // V2-HTTP-5, V2-PRG-1, V2-LOG-1, V2-HTTP-9.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let mut http = ModernHttpClient::of(&server);
    http.can = no_tasks();
    for wants_logs in [false, true] {
        let mut params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
        if wants_logs {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        harness.open_gate();
        let mut response = http.request("tools/call", params).await;
        assert!(response.is_stream());
        assert_eq!(response.header("x-accel-buffering"), Some("no"));
        for step in 1..=3 {
            let notification = next(&mut response, "tools/call").await;
            assert_eq!(notification["method"], "notifications/progress");
            assert_eq!(notification["params"]["progressToken"], 7);
            assert_eq!(notification["params"]["progress"], step);
            if wants_logs {
                let notification = next(&mut response, "tools/call").await;
                assert_eq!(notification["method"], "notifications/message");
            }
            harness.open_gate();
        }
        let last = next(&mut response, "tools/call").await;
        assert_eq!(last["id"], "h");
        assert_eq!(last["result"]["content"][0]["text"], "arrived");
        assert_eq!(response.event().await, None);
    }
}

#[tokio::test]
async fn a_closed_stream_stops_a_plain_call() {
    // V2-HTTP-6, V2-CANC-1.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let mut http = ModernHttpClient::of(&server);
    http.can = no_tasks();
    let mut params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
    params["_meta"]["progressToken"] = json!("p");
    harness.open_gate();
    let mut response = http.request("tools/call", params).await;
    next(&mut response, "tools/call").await;
    assert_eq!(harness.engine.running(), 1);
    drop(response);
    harness.until_idle().await;
}

#[tokio::test]
async fn a_disconnect_before_the_response_stops_the_call() {
    // V2-CREATE-12: nothing was stored yet, and nothing is left.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let mut http = ModernHttpClient::of(&server);
    http.can = no_tasks();
    let call = tokio::spawn({
        let http = http.clone();
        async move {
            http.request("tools/call", json!({ "name": "gated" }))
                .await
                .status
        }
    });
    eventually("the call runs", async || harness.started_calls() > 0).await;
    call.abort();
    harness.until_idle().await;
}

#[tokio::test]
async fn a_disconnect_never_affects_a_task() {
    // V2-STATE-2: the task is accessible on another connection.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let created = http.request("tools/call", json!({ "name": "gated" })).await;
    let created = created.json().await;
    let task = created["result"]["taskId"].as_str().unwrap();
    assert_eq!(http.status(task).await["status"], "working");
    assert_eq!(harness.engine.running(), 1);
    harness.open_gate();
    http.until(task, "completed").await;
}

#[tokio::test]
async fn the_accept_header_selects_the_form() {
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let events = [("accept", "text/event-stream")];
    let mut response = http.request_with("tools/list", json!({}), &events).await;
    assert!(response.is_stream());
    assert_eq!(next(&mut response, "tools/list").await["id"], "h");
    let json_only = [("accept", "application/json")];
    harness.gate.add_permits(4);
    let params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
    let response = http.request_with("tools/call", params, &json_only).await;
    let response = response.json().await;
    assert_eq!(response["result"]["content"][0]["text"], "arrived");
}
