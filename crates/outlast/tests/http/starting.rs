//! A listener that is open before its store is.

use std::sync::Arc;

use outlast::store::Store;
use outlast::store::open_store;
use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast_engine::store::OpeningStore;
use outlast_testkit::mcp::http::HttpResponse;
use outlast_testkit::mcp::{HttpClient, tasks_only, with_modern_meta};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::harness::Harness;

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
        let rejected = client.request(method, named.clone()).await;
        assert_eq!(rejected.status, 503, "{method}");
        assert_starting(&rejected.json().await);
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        let rejected = ask_modern(&client, method, params).await;
        assert_starting(&rejected.json().await);
    }
    for method in ["tools/call", "tools/list", "subscriptions/listen"] {
        let rejected = ask_modern(&client, method, json!({ "name": "gated" })).await;
        assert_eq!(rejected.status, 503, "{method}");
        assert_starting(&rejected.json().await);
    }
    let (status, why) = client.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(why.starts_with("not ready: starting"), "{why}");
    assert_eq!(client.get("/healthz").await.0, 200);
    let introduction = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "early", "version": "1" },
    });
    let rejected = harness
        .client_without_session()
        .request("initialize", introduction)
        .await;
    assert_starting(&rejected.json().await);

    let url = file.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    open.send(store).ok().unwrap();
    start.await.unwrap().unwrap();
    assert_eq!(client.status(&task).await["result"]["status"], "completed");
    assert_eq!(client.get("/readyz").await.0, 200);
    // A modern caller without a token does not see the tasks of a session.
    let unknown = ask_modern(&client, "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(unknown.json().await["error"]["code"], -32602);
    harness.stop().await;
}

/// The response to a modern request.
async fn ask_modern(client: &HttpClient, method: &str, params: Value) -> HttpResponse {
    let params = with_modern_meta(params, tasks_only());
    HttpClient::modern(client.address)
        .request(method, params)
        .await
}

fn assert_starting(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32603, "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("starting"), "{message}");
}
