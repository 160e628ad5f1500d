//! Whose tasks they are, without a session.

use outlast::engine::{Policy, Quota};
use outlast::transport::http::{HttpOptions, Token, serve};
use outlast_testkit::mcp::http as bytes;
use serde_json::{Value, json};

use crate::harness::{Stage, named};
use crate::http_client::{Http, served};

#[tokio::test]
async fn a_token_tells_owners_apart_and_joins_the_eras() {
    // V2-SEC-2, V2-NOTIF-10, V2-ERA-8: foreign is like unknown.
    let stage = Stage::new().await;
    let options = HttpOptions {
        tokens: vec![Token::new("ada", "a-secret"), Token::new("bob", "b-secret")],
        ..HttpOptions::default()
    };
    let server = serve(stage.front.clone(), options).await.unwrap();
    let ada = Http::with_token(&server, "a-secret");
    let bob = Http::with_token(&server, "b-secret");
    let task = ada.task("gated").await;
    assert_eq!(ada.status(&task).await["status"], "working");
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        assert_eq!(
            bob.refused(method, params, &[]).await,
            (200, -32602),
            "{method}"
        );
    }
    let wish = json!({ "notifications": { "taskIds": [task] } });
    let mut heard = bob.ask("subscriptions/listen", wish).await;
    let ack = crate::http_client::next(&mut heard, "subscriptions/listen").await;
    assert_eq!(ack["params"]["notifications"], json!({}));
    // The same principal in a legacy session.
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "old", "version": "1" },
    });
    let met = legacy(&ada, None, "initialize", params).await;
    let session = met.header("mcp-session-id").unwrap().to_owned();
    let listed = legacy(&ada, Some(&session), "tasks/list", json!({})).await;
    let listed = listed.json().await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task.as_str());
    let asked = json!({ "name": "gated", "task": {} });
    let created = legacy(&ada, Some(&session), "tools/call", asked).await;
    let created = created.json().await;
    let other = created["result"]["task"]["taskId"].as_str().unwrap();
    assert_eq!(ada.status(other).await["status"], "working");
    assert_eq!(
        bob.refused("tasks/get", json!({ "taskId": other }), &[])
            .await,
        (200, -32602)
    );
}

#[tokio::test]
async fn without_a_token_the_id_is_the_secret() {
    // V2-SEC-1, V2-SEC-4: but the tasks of a legacy session are its own.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    let task = http.task("gated").await;
    assert_eq!(task.len(), 26);
    assert_eq!(Http::of(&server).status(&task).await["status"], "working");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "old", "version": "1" },
    });
    let met = legacy(&http, None, "initialize", params).await;
    let session = met.header("mcp-session-id").unwrap().to_owned();
    let seen = legacy(
        &http,
        Some(&session),
        "tasks/get",
        json!({ "taskId": task }),
    )
    .await;
    assert_eq!(seen.json().await["error"]["code"], -32602);
    let asked = json!({ "name": "gated", "task": {} });
    let created = legacy(&http, Some(&session), "tools/call", asked).await;
    let created = created.json().await;
    let other = &created["result"]["task"]["taskId"];
    assert_eq!(
        http.refused("tasks/get", json!({ "taskId": other }), &[])
            .await,
        (200, -32602)
    );
}

#[tokio::test]
async fn an_address_has_a_quota() {
    let policy = Policy {
        quota: Quota {
            owner_open: 2,
            ..Policy::default().quota
        },
        ..Policy::default()
    };
    let stage = Stage::with(policy).await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    http.task("tidy").await;
    http.task("tidy").await;
    let refused = http.ask("tools/call", json!({ "name": "tidy" })).await;
    assert_eq!(refused.json().await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_state_is_good_for_its_principal_only() {
    // V2-MRTR-5.
    let stage = Stage::new().await;
    let options = HttpOptions {
        tokens: vec![Token::new("ada", "a-secret"), Token::new("bob", "b-secret")],
        ..HttpOptions::default()
    };
    let server = serve(stage.front.clone(), options).await.unwrap();
    let ada = Http::with_token(&server, "a-secret");
    let bob = Http::with_token(&server, "b-secret");
    let asked = ada.call("tools/call", json!({ "name": "plain" })).await;
    let key = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let retry = json!({
        "name": "plain", "requestState": asked["result"]["requestState"],
        "inputResponses": { key: named("Ada") },
    });
    assert_eq!(
        bob.refused("tools/call", retry.clone(), &[]).await,
        (200, -32602)
    );
    let said = ada.call("tools/call", retry).await;
    assert_eq!(said["result"]["resultType"], "complete");
    assert_eq!(stage.begun(), 1);
}

/// A request of the other era.
async fn legacy(http: &Http, session: Option<&str>, method: &str, params: Value) -> bytes::Answer {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut other = vec![
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-method", ""),
        ("mcp-name", ""),
    ];
    other.extend(session.map(|session| ("mcp-session-id", session)));
    let answer = http.post(&message, &other).await;
    assert_eq!(answer.status, 200);
    answer
}
