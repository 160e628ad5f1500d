//! A listener that is open before its store is.

use std::sync::Arc;

use outlast::store::Store;
use outlast::store::open_store;
use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast_engine::store::OpeningStore;
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::http::Answer;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::harness::Harness;
use crate::health::get;

#[tokio::test]
async fn requests_before_the_store_opens_get_starting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let harness = Harness::on_file(&file, HttpOptions::default()).await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    harness.gate.add_permits(1);
    client.until(&task, "completed").await;
    harness.stop().await;

    let (open, opened) = oneshot::channel::<Arc<dyn Store>>();
    let slow = OpeningStore::new(async { Ok(opened.await.unwrap()) });
    let options = HttpOptions::default();
    let (harness, start) = Harness::starting(Arc::new(slow), options, Policy::default()).await;
    let start = tokio::spawn(start);
    let client = HttpClient {
        address: harness.server.local_addr(),
        ..client
    };
    let named = json!({ "taskId": task });
    for method in [
        "tasks/get",
        "tasks/result",
        "tasks/cancel",
        "tasks/list",
        "ping",
    ] {
        let rejected = client.ask(method, named.clone()).await;
        assert_eq!(rejected.status, 503, "{method}");
        assert_starting(&rejected.json().await);
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        let rejected = ask_modern(&client, method, &task, params).await;
        assert_starting(&rejected.json().await);
    }
    for method in ["tools/call", "tools/list", "subscriptions/listen"] {
        let rejected = ask_modern(&client, method, "gated", json!({ "name": "gated" })).await;
        assert_eq!(rejected.status, 503, "{method}");
        assert_starting(&rejected.json().await);
    }
    let (status, why) = get(&client, "/readyz").await;
    assert_eq!(status, 503);
    assert!(why.starts_with("not ready: starting"), "{why}");
    assert_eq!(get(&client, "/healthz").await.0, 200);
    let introduction = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "early", "version": "1" },
    });
    let rejected = harness
        .client_without_session()
        .ask("initialize", introduction)
        .await;
    assert_starting(&rejected.json().await);

    let url = file.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    open.send(store).ok().unwrap();
    start.await.unwrap().unwrap();
    assert_eq!(client.status(&task).await["result"]["status"], "completed");
    assert_eq!(get(&client, "/readyz").await.0, 200);
    // A modern caller without a token does not see the tasks of a session.
    let unknown = ask_modern(&client, "tasks/get", &task, json!({ "taskId": task })).await;
    assert_eq!(unknown.json().await["error"]["code"], -32602);
    harness.stop().await;
}

/// The response to a modern request about the tool or task `name`.
async fn ask_modern(client: &HttpClient, method: &str, name: &str, mut params: Value) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "early", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        },
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", name),
        ("mcp-session-id", ""),
    ];
    let body = request.to_string();
    client.send("POST", &headers, body.as_bytes()).await
}

fn assert_starting(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32603, "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("starting"), "{message}");
}
