//! The rmcp server over HTTP: separate sessions, the head of the request, sessions after a restart.

use outlast::store::open_store;
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};

use crate::harness::{test_handler, text};
use crate::test_handler::HandlerControl;

#[tokio::test]
async fn sessions_have_separate_handlers_and_tasks() {
    // V1-SEC-1.
    let (control, _reports) = HandlerControl::new();
    let server = test_handler(&control).build();
    let running = server.serve_http("127.0.0.1:0").await.unwrap();
    let one = HttpClient::connect(running.local_addr()).await;
    let two = HttpClient::connect(running.local_addr()).await;
    let task = one.task("gated", json!({})).await;
    let foreign = two.response("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(foreign["error"]["code"], -32602);
    control.gate.add_permits(1);
    let answer = one
        .response("tasks/result", json!({ "taskId": task }))
        .await;
    assert_eq!(text(&answer), "through");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_handler_gets_the_head_of_the_request() {
    let (control, _reports) = HandlerControl::new();
    let server = test_handler(&control).build();
    let running = server.serve_http("127.0.0.1:0").await.unwrap();
    let client = HttpClient::connect(running.local_addr()).await;
    let answer = client
        .response("tools/call", json!({ "name": "caller" }))
        .await;
    let seen: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(seen["host"], true);
    let task = client.task("caller", json!({})).await;
    let answer = client
        .response("tasks/result", json!({ "taskId": task }))
        .await;
    let seen: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(seen["host"], true);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_session_continues_after_a_restart_with_a_new_handler() {
    // V1-SESS-1: the client does not initialize again.
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("tasks.db");
    let url = url.to_str().unwrap().parse().unwrap();
    let (control, _reports) = HandlerControl::new();
    let serve = async || {
        let store = open_store(&url, Default::default()).await.unwrap();
        test_handler(&control)
            .store(store)
            .build()
            .serve_http("127.0.0.1:0")
            .await
            .unwrap()
    };
    let running = serve().await;
    let mut client = HttpClient::connect(running.local_addr()).await;
    control.gate.add_permits(1);
    let task = client.task("gated", json!({})).await;
    client
        .response("tasks/result", json!({ "taskId": task }))
        .await;
    running.shutdown().await.unwrap();

    let running = serve().await;
    client.address = running.local_addr();
    let answer = client
        .response("tasks/result", json!({ "taskId": task }))
        .await;
    assert_eq!(text(&answer), "through");
    let answer = client
        .response("tools/call", json!({ "name": "caller" }))
        .await;
    let seen: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(seen["name"], "by-hand");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_invalid_address_is_rejected_with_an_example() {
    let (control, _reports) = HandlerControl::new();
    let server = test_handler(&control).build();
    let refused = server
        .serve_http("localhost")
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1:8040"), "{refused}");
}
