//! Bearer tokens: who comes in, and what they see of each other.

use outlast::transport::http::{HttpOptions, Token};
use outlast_testkit::mcp::HttpClient;
use serde_json::json;

use crate::harness::Stage;

async fn stage() -> Stage {
    Stage::with(HttpOptions {
        tokens: vec![Token::new("ada", "a-secret"), Token::new("bob", "b-secret")],
        ..HttpOptions::default()
    })
    .await
}

async fn meet(stage: &Stage, token: &'static str) -> HttpClient {
    let mut client = HttpClient {
        token: Some(token),
        ..stage.stranger()
    };
    client.introduce("2025-11-25").await;
    client
}

#[tokio::test]
async fn without_a_token_nobody_comes_in() {
    let stage = stage().await;
    let mut client = stage.stranger();
    let refused = client.ask("initialize", json!({})).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    client.token = Some("wrong");
    let refused = client.ask("initialize", json!({})).await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("invalid_token"));
    assert_eq!(client.send("GET", &[], b"").await.status, 401);
    assert_eq!(client.leave().await.status, 401);
}

#[tokio::test]
async fn a_session_is_its_principals() {
    // V1-SESS-7.
    let stage = stage().await;
    let ada = meet(&stage, "a-secret").await;
    let thief = HttpClient {
        token: Some("b-secret"),
        ..ada.clone()
    };
    assert_eq!(thief.ask("ping", json!({})).await.status, 404);
    assert_eq!(thief.send("GET", &[], b"").await.status, 404);
    assert_eq!(thief.leave().await.status, 404);
    assert_eq!(ada.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_task_is_its_principals_in_every_session() {
    // V1-SESS-8, A1-20, A1-32, V1-SEC-2.
    let stage = stage().await;
    let (ada, bob) = (
        meet(&stage, "a-secret").await,
        meet(&stage, "b-secret").await,
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

    assert_eq!(ada.leave().await.status, 204);
    let ada = meet(&stage, "a-secret").await;
    assert_eq!(ada.status(&task).await["result"]["status"], "working");
    stage.gate.add_permits(1);
    ada.until(&task, "completed").await;
}

#[tokio::test]
async fn a_question_of_a_session_that_ended_reaches_the_next_one() {
    let stage = stage().await;
    let ada = meet(&stage, "a-secret").await;
    let task = ada.task("ask", json!({})).await;
    ada.until(&task, "input_required").await;
    assert_eq!(ada.leave().await.status, 204);
    let ada = meet(&stage, "a-secret").await;
    let mut waiting = ada.result(&task).await;
    let (_, question) = waiting.told("elicitation/create").await;
    ada.respond(&question["id"], "Ada").await;
    assert!(waiting.rest().await.last().unwrap().get("result").is_some());
}
