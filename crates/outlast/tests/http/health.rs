//! Health checks: `/readyz` is 503 exactly while a new task would be rejected, and gives the
//! reason.

use std::sync::Arc;
use std::time::Duration;

use outlast::store::MemoryStore;
use outlast::store::Reason;
use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast_engine::store::Health;
use outlast_testkit::FaultyStore;
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::harness::Harness;

/// Whether the server is ready; `/healthz` is 200 in any case.
async fn ready(client: &HttpClient) -> Result<(), String> {
    assert_eq!(client.get("/healthz").await, (200, "ok\n".to_owned()));
    let (status, body) = client.get("/readyz").await;
    assert_eq!(body.lines().count(), 1, "{body:?}");
    match status {
        200 => {
            assert_eq!(body, "ready\n");
            Ok(())
        }
        503 => Err(body.strip_prefix("not ready: ").unwrap().to_owned()),
        other => panic!("{other} {body}"),
    }
}

/// Waits until the readiness is as expected.
async fn until_ready(client: &HttpClient, expected: bool) {
    let reached = timeout(WAIT_LIMIT, async {
        while ready(client).await.is_ok() != expected {
            sleep(Duration::from_millis(10)).await;
        }
    });
    reached.await.unwrap();
}

/// The response to a call that requests a task.
async fn create(client: &HttpClient) -> Value {
    let params = json!({ "name": "gated", "arguments": {}, "task": {} });
    client.call("tools/call", params).await
}

/// Asserts that a request is rejected with 503.
async fn assert_unavailable(client: &HttpClient, method: &str) {
    let response = client.request(method, json!({ "name": "echo" })).await;
    assert_eq!(response.status, 503, "{method}");
    assert_eq!(response.header("retry-after"), Some("1"));
    let body = response.json().await;
    assert_eq!(body["error"]["code"], -32603, "{body}");
    assert_eq!(body["id"], 1, "{body}");
}

#[tokio::test]
async fn a_server_is_ready_while_its_store_accepts_tasks() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let options = HttpOptions::default();
    let harness = Harness::on(Arc::new(store), options, Policy::default()).await;
    let client = harness.client().await;
    let reason = || Reason::new("the disk\nis full");
    for (health, why) in [
        (Health::Ready, None),
        (
            Health::NoSpace(reason()),
            Some("the store has no space: the disk is full\n"),
        ),
        (Health::Ready, None),
        (
            Health::Down(reason()),
            Some("the store cannot be written: the disk is full\n"),
        ),
        (Health::Closed, Some("the store is closed\n")),
        (Health::Ready, None),
    ] {
        faults.report(health.clone());
        let created = create(&client).await;
        let rejected = created["error"]["code"] == -32603;
        assert_eq!(rejected, why.is_some(), "{health:?}: {created}");
        let ready = ready(&client).await;
        assert_eq!(ready.as_ref().err().map(String::as_str), why, "{health:?}");
    }
}

#[tokio::test]
async fn a_server_at_its_task_quota_is_not_ready() {
    let quota = Policy::default().quota;
    for (setting, quota) in [
        ("quota.retained", quota.with_retained(1)),
        ("quota.open", quota.with_open(1)),
    ] {
        let policy = Policy::default().with_quota(quota);
        let harness = Harness::with_policy(HttpOptions::default(), policy).await;
        let client = harness.client().await;
        assert_eq!(ready(&client).await, Ok(()));
        create(&client).await;
        let why = ready(&client).await.unwrap_err();
        assert!(why.contains(setting), "{why}");
        assert_eq!(create(&client).await["error"]["code"], -32603);
    }
}

#[tokio::test]
async fn a_draining_server_serves_task_methods_only() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    let draining = tokio::spawn(harness.engine.clone().shutdown(WAIT_LIMIT));
    until_ready(&client, false).await;
    let why = ready(&client).await.unwrap_err();
    assert_eq!(why, "the server is shutting down\n");
    for method in ["tools/call", "tools/list", "resources/read"] {
        assert_unavailable(&client, method).await;
    }
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    client.call("ping", json!({})).await;
    harness.client().await;
    harness.gate.add_permits(1);
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");
    draining.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closing_server_serves_health_checks_until_its_last_request() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.json().await }
    });
    let begun = async {
        while harness.engine.running() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(WAIT_LIMIT, begun).await.unwrap();
    let closing = tokio::spawn(harness.server.shutdown());
    until_ready(&client, false).await;
    assert_unavailable(&client, "tools/call").await;
    assert_unavailable(&client, "ping").await;
    harness.gate.add_permits(1);
    let response = waiting.await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "through");
    closing.await.unwrap();
}

#[tokio::test]
async fn connections_beyond_the_limit_get_health_checks_and_503() {
    let options = HttpOptions::default().with_max_connections(3);
    let harness = Harness::with(options).await;
    let client = harness.client().await;
    until_ready(&client, true).await;
    let mut idle = Vec::new();
    // Some of them are rejected connections, which are closed to make room.
    for _ in 0..40 {
        idle.push(TcpStream::connect(client.address).await.unwrap());
    }
    until_ready(&client, false).await;
    let why = ready(&client).await.unwrap_err();
    assert_eq!(why, "all 3 connections are in use\n");
    assert_unavailable(&client, "tools/call").await;
    drop(idle);
    until_ready(&client, true).await;
    client.task("gated", json!({})).await;
}

/// The limit of every wait.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
