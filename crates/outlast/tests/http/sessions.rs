//! The lifecycle of a session.

use std::time::Duration;

use outlast::task::{Owner, Policy};
use outlast::transport::http::HttpOptions;
use outlast_testkit::eventually;
use outlast_testkit::mcp::http::HttpResponse;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn a_session_id_is_random_and_visible_ascii() {
    // V1-SESS-1.
    let harness = Harness::new().await;
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let name = harness.client().await.session.unwrap();
        assert!(name.len() >= 26 && name.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(names.insert(name));
    }
}

#[tokio::test]
async fn a_malformed_initialize_opens_no_session() {
    let harness = Harness::new().await;
    let response = harness
        .client_without_session()
        .request("initialize", json!({}))
        .await;
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(response.json().await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_request_must_name_its_session() {
    // V1-SESS-3, V1-SESS-4.
    let harness = Harness::new().await;
    let stranger = harness.client_without_session();
    assert_eq!(stranger.request("tools/list", json!({})).await.status, 400);
    assert_eq!(stranger.send("GET", &[], b"").await.status, 400);
    assert_eq!(stranger.delete_session().await.status, 400);
    let mut lost = harness.client().await;
    for name in ["00000000000000000000000000", "x", "../../etc/passwd"] {
        lost.session = Some(name.into());
        let response = lost.request("tools/list", json!({})).await;
        assert_eq!(response.status, 404);
        assert!(response.json().await.get("error").is_some());
        assert_eq!(lost.send("GET", &[], b"").await.status, 404);
        assert_eq!(lost.delete_session().await.status, 404);
    }
}

#[tokio::test]
async fn no_error_shows_the_id_of_a_session() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let id = client.session.clone().unwrap();
    let check = async |answer: HttpResponse, status: u16| {
        assert_eq!(answer.status, status);
        let body = answer.json().await;
        assert!(body.get("error").is_some(), "{body}");
        assert!(!body.to_string().contains(&id), "{body}");
    };
    for (method, params) in [
        ("tools/call", json!({ "name": "none" })),
        ("tasks/get", json!({ "taskId": "none" })),
        ("none", json!({})),
    ] {
        check(client.request(method, params).await, 200).await;
    }
    client.delete_session().await;
    check(client.request("ping", json!({})).await, 404).await;
    check(client.send("GET", &[], b"").await, 404).await;
    check(client.delete_session().await, 404).await;
}

#[tokio::test]
async fn an_ended_session_is_gone_with_its_tasks() {
    // V1-SESS-4, BD-22.
    let harness = Harness::new().await;
    let client = harness.client().await;
    client.task("gated", json!({})).await;
    let mut general = client.listen(None).await;
    assert_eq!(client.delete_session().await.status, 204);
    assert_eq!(client.request("ping", json!({})).await.status, 404);
    assert_eq!(client.delete_session().await.status, 404);
    general.rest().await;
    let owner = Owner::session(client.session.unwrap());
    let is_free = async || harness.engine.usage(&owner).await.unwrap().owner_open == 0;
    eventually("the task is cancelled", is_free).await;
}

#[tokio::test]
async fn a_call_ends_with_its_session() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.status }
    });
    eventually("the call runs", async || harness.engine.running() > 0).await;
    assert_eq!(client.delete_session().await.status, 204);
    assert_eq!(waiting.await.unwrap(), 202);
    eventually("the call ends", async || harness.engine.running() == 0).await;
}

#[tokio::test]
async fn open_requests_and_streams_of_a_session_are_limited() {
    let harness = Harness::with(HttpOptions::default().with_max_streams_per_session(2)).await;
    let client = harness.client().await;
    let _one = client.listen(None).await;
    let two = client.listen(None).await;
    assert_eq!(client.send("GET", &[], b"").await.status, 429);
    assert_eq!(client.request("ping", json!({})).await.status, 429);
    drop(two);
    let has_room = async || client.request("ping", json!({})).await.status == 200;
    eventually("the closed stream makes room", has_room).await;
}

#[tokio::test]
async fn only_an_unused_session_expires() {
    let harness = Harness::with_policy(
        HttpOptions::default().with_session_idle_timeout(Duration::from_millis(400)),
        Policy::default()
            .with_max_ttl(Duration::from_millis(400))
            .with_default_ttl(Duration::from_millis(400)),
    )
    .await;
    let (used, listening, idle) = (
        harness.client().await,
        harness.client().await,
        harness.client().await,
    );
    let _stream = listening.listen(None).await;
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(used.request("ping", json!({})).await.status, 200);
    }
    assert_eq!(idle.request("ping", json!({})).await.status, 404);
    assert_eq!(listening.request("ping", json!({})).await.status, 200);
}
