//! Bearer tokens: authentication, and isolation of principals.

use outlast::transport::http::{BearerTokens, HttpOptions, Token};
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

use crate::harness::Harness;

async fn harness() -> Harness {
    Harness::with(
        HttpOptions::default().with_authenticate(BearerTokens::shared(vec![
            Token::new("ada", "a-secret"),
            Token::new("bob", "b-secret"),
        ])),
    )
    .await
}

async fn connect_user(harness: &Harness, token: &'static str) -> HttpClient {
    let mut client = HttpClient {
        token: Some(token),
        ..harness.client_without_session()
    };
    client.introduce("2025-11-25").await;
    client
}

#[tokio::test]
async fn a_request_without_a_token_is_rejected() {
    let harness = harness().await;
    let mut client = harness.client_without_session();
    let rejected = client.request("initialize", json!({})).await;
    assert_eq!(rejected.status, 401);
    assert_eq!(rejected.header("www-authenticate"), Some("Bearer"));
    client.token = Some("wrong");
    let rejected = client.request("initialize", json!({})).await;
    assert_eq!(rejected.status, 401);
    let challenge = rejected.header("www-authenticate").unwrap();
    assert!(challenge.contains("invalid_token"));
    assert_eq!(client.send("GET", &[], b"").await.status, 401);
    assert_eq!(client.delete_session().await.status, 401);
}

#[tokio::test]
async fn only_its_principal_can_use_a_session() {
    // V1-SESS-7.
    let harness = harness().await;
    let ada = connect_user(&harness, "a-secret").await;
    let thief = HttpClient {
        token: Some("b-secret"),
        ..ada.clone()
    };
    assert_eq!(thief.request("ping", json!({})).await.status, 404);
    assert_eq!(thief.send("GET", &[], b"").await.status, 404);
    assert_eq!(thief.delete_session().await.status, 404);
    assert_eq!(ada.request("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn only_its_principal_can_access_a_task() {
    // V1-SESS-8, A1-20, A1-32, V1-SEC-2.
    let harness = harness().await;
    let (ada, bob) = (
        connect_user(&harness, "a-secret").await,
        connect_user(&harness, "b-secret").await,
    );
    let task = ada.task("gated", json!({})).await;
    let unknown = bob.status("00000000000000000000000000").await;
    assert_eq!(bob.status(&task).await, unknown);
    assert_eq!(unknown["error"]["code"], -32602);
    let listed = bob.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    let stolen = bob.result(&task).await.json().await;
    assert_eq!(stolen["error"], unknown["error"]);
    let cancelled = bob.call("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(cancelled["error"], unknown["error"]);

    assert_eq!(ada.delete_session().await.status, 204);
    let ada = connect_user(&harness, "a-secret").await;
    assert_eq!(ada.status(&task).await["result"]["status"], "working");
    harness.gate.add_permits(1);
    ada.until(&task, "completed").await;
}

#[tokio::test]
async fn the_next_session_gets_input_requests_of_an_ended_one() {
    let harness = harness().await;
    let ada = connect_user(&harness, "a-secret").await;
    let task = ada.task("ask", json!({})).await;
    ada.until(&task, "input_required").await;
    assert_eq!(ada.delete_session().await.status, 204);
    let ada = connect_user(&harness, "a-secret").await;
    let mut waiting = ada.result(&task).await;
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    ada.respond(&input_request["id"], "Ada").await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}
