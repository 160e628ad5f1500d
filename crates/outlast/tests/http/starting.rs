//! A listener that is open before its store is.

use std::sync::Arc;

use outlast::engine::store::OpeningStore;
use outlast::engine::{Policy, Store};
use outlast::store::open_store;
use outlast::transport::http::HttpOptions;
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::harness::Stage;
use crate::health::get;

#[tokio::test]
async fn requests_before_the_store_is_open_are_refused_as_starting_and_never_as_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let stage = Stage::on_file(&file, HttpOptions::default()).await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    stage.gate.add_permits(1);
    client.until(&task, "completed").await;
    stage.fall().await;

    let (open, opened) = oneshot::channel::<Arc<dyn Store>>();
    let slow = OpeningStore::new(async { Ok(opened.await.unwrap()) });
    let options = HttpOptions::default();
    let (stage, start) = Stage::starting(Arc::new(slow), options, Policy::default()).await;
    let start = tokio::spawn(start);
    let client = HttpClient {
        address: stage.server.local_addr(),
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
        let refused = client.ask(method, named.clone()).await;
        assert_eq!(refused.status, 503, "{method}");
        assert_starting(&refused.json().await);
    }
    let (status, why) = get(&client, "/readyz").await;
    assert_eq!(status, 503);
    assert!(why.starts_with("not ready: starting"), "{why}");
    assert_eq!(get(&client, "/healthz").await.0, 200);
    let introduction = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "early", "version": "1" },
    });
    let refused = stage.stranger().ask("initialize", introduction).await;
    assert_starting(&refused.json().await);

    let url = file.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    open.send(store).ok().unwrap();
    start.await.unwrap().unwrap();
    assert_eq!(client.status(&task).await["result"]["status"], "completed");
    assert_eq!(get(&client, "/readyz").await.0, 200);
    stage.fall().await;
}

fn assert_starting(answer: &Value) {
    let error = &answer["error"];
    assert_eq!(error["code"], -32603, "{answer}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("starting"), "{message}");
}
