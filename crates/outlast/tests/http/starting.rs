//! A listener that is open before its store is.

use std::sync::Arc;

use outlast::store::Store;
use outlast::store::open_store;
use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast_engine::store::OpeningStore;
use outlast_testkit::mcp::HttpClient;
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
    harness.stop().await;
}

fn assert_starting(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32603, "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("starting"), "{message}");
}
