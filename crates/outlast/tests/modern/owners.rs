//! Owners of tasks without a session.

use outlast::task::Policy;
use outlast::transport::http::{BearerTokens, HttpOptions, Token, serve};
use outlast_testkit::mcp::http as bytes;
use serde_json::{Value, json};

use crate::harness::{Harness, name_response};
use crate::http_client::{ModernHttpClient, serve_http};

#[tokio::test]
async fn a_principal_has_the_same_tasks_in_both_eras() {
    // V2-SEC-2, V2-NOTIF-10, V2-ERA-8: a foreign task is like an unknown one.
    let harness = Harness::new().await;
    let options = HttpOptions::default().with_authenticate(BearerTokens::shared(vec![
        Token::new("ada", "a-secret"),
        Token::new("bob", "b-secret"),
    ]));
    let server = serve(harness.server.clone(), options).await.unwrap();
    let ada = ModernHttpClient::with_token(&server, "a-secret");
    let bob = ModernHttpClient::with_token(&server, "b-secret");
    let task = ada.task("gated").await;
    assert_eq!(ada.status(&task).await["status"], "working");
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = json!({ "taskId": task, "inputResponses": {} });
        assert_eq!(
            bob.rejected(method, params, &[]).await,
            (200, -32602),
            "{method}"
        );
    }
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let mut notified = bob.request("subscriptions/listen", filter).await;
    let ack = crate::http_client::next(&mut notified, "subscriptions/listen").await;
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
    let input_required = json!({ "name": "gated", "task": {} });
    let created = legacy(&ada, Some(&session), "tools/call", input_required).await;
    let created = created.json().await;
    let other = created["result"]["task"]["taskId"].as_str().unwrap();
    assert_eq!(ada.status(other).await["status"], "working");
    assert_eq!(
        bob.rejected("tasks/get", json!({ "taskId": other }), &[])
            .await,
        (200, -32602)
    );
}

#[tokio::test]
async fn without_a_token_the_task_id_is_the_secret() {
    // V2-SEC-1, V2-SEC-4: tasks of a legacy session are private.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let task = http.task("gated").await;
    assert_eq!(task.len(), 26);
    assert_eq!(
        ModernHttpClient::of(&server).status(&task).await["status"],
        "working"
    );
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
    let input_required = json!({ "name": "gated", "task": {} });
    let created = legacy(&http, Some(&session), "tools/call", input_required).await;
    let created = created.json().await;
    let other = &created["result"]["task"]["taskId"];
    assert_eq!(
        http.rejected("tasks/get", json!({ "taskId": other }), &[])
            .await,
        (200, -32602)
    );
}

#[tokio::test]
async fn an_address_has_a_quota() {
    let policy = Policy::default().with_quota(Policy::default().quota.with_owner_open(2));
    let harness = Harness::with(policy).await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    http.task("tidy").await;
    http.task("tidy").await;
    let rejected = http.request("tools/call", json!({ "name": "tidy" })).await;
    assert_eq!(rejected.json().await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_request_state_is_bound_to_its_principal() {
    // V2-MRTR-5.
    let harness = Harness::new().await;
    let options = HttpOptions::default().with_authenticate(BearerTokens::shared(vec![
        Token::new("ada", "a-secret"),
        Token::new("bob", "b-secret"),
    ]));
    let server = serve(harness.server.clone(), options).await.unwrap();
    let ada = ModernHttpClient::with_token(&server, "a-secret");
    let bob = ModernHttpClient::with_token(&server, "b-secret");
    let input_required = ada.call("tools/call", json!({ "name": "plain" })).await;
    let key = input_required["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let retry = json!({
        "name": "plain", "requestState": input_required["result"]["requestState"],
        "inputResponses": { key: name_response("Ada") },
    });
    assert_eq!(
        bob.rejected("tools/call", retry.clone(), &[]).await,
        (200, -32602)
    );
    let received = ada.call("tools/call", retry).await;
    assert_eq!(received["result"]["resultType"], "complete");
    assert_eq!(harness.started_calls(), 1);
}

/// Sends a legacy request.
async fn legacy(
    http: &ModernHttpClient,
    session: Option<&str>,
    method: &str,
    params: Value,
) -> bytes::HttpResponse {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut other = vec![
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-method", ""),
        ("mcp-name", ""),
    ];
    other.extend(session.map(|session| ("mcp-session-id", session)));
    let response = http.post(&message, &other).await;
    assert_eq!(response.status, 200);
    response
}
