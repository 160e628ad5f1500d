//! The headers of a modern request, and the status of its response.

use outlast::transport::http::{HttpOptions, serve};
use outlast::wire::OnMissingName;
use outlast_testkit::mcp::with_modern_meta;
use serde_json::json;

use crate::harness::Harness;
use crate::http_client::{ModernHttpClient, serve_http};

#[tokio::test]
async fn headers_must_match_the_body() {
    // V2-HH-1, V2-HH-2, V2-HH-3, V2-HH-4, V2-HDR-2, V2-HDR-4, V2-CODE-4.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let echo = || json!({ "name": "echo", "arguments": { "say": "hi" } });
    let fine = http
        .request_with("tools/call", echo(), &[("MCP-METHOD", " tools/call ")])
        .await;
    assert_eq!(fine.status, 200);
    for (header, value) in [
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-method", ""),
        ("mcp-method", "tools/list"),
        ("mcp-method", "TOOLS/CALL"),
        ("mcp-name", ""),
        ("mcp-name", "Echo"),
        ("mcp-name", "=?base64?not base64?="),
    ] {
        let rejected = http
            .rejected("tools/call", echo(), &[(header, value)])
            .await;
        assert_eq!(rejected, (400, -32020), "{header}: {value}");
    }
    // V2-HH-5.
    let encoded = [("mcp-name", "=?base64?ZWNobw==?=")];
    assert_eq!(
        http.request_with("tools/call", echo(), &encoded)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn annotated_arguments_must_match_their_headers() {
    // V2-PARAM-1, V2-PARAM-5, V2-HH-6.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let echo = || json!({ "name": "echo", "arguments": { "say": "hi" } });
    for value in ["", "ho", "=?base64?%?="] {
        let rejected = http
            .rejected("tools/call", echo(), &[("mcp-param-say", value)])
            .await;
        assert_eq!(rejected, (400, -32020), "{value}");
    }
    let extra = [
        ("mcp-param-other", "x"),
        ("mcp-param-say", "=?base64?aGk=?="),
    ];
    assert_eq!(
        http.request_with("tools/call", echo(), &extra).await.status,
        200
    );
}

#[tokio::test]
async fn a_repeated_mcp_header_is_rejected() {
    // V2-HDR-2, V2-HH-2, V2-PARAM-5: a proxy and this server could read different values.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let echo = || json!({ "name": "echo", "arguments": { "say": "hi" } });
    for (header, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("mcp-param-say", "hi"),
        ("mcp-param-other", "hi"),
    ] {
        for second in [value, "another"] {
            let twice = [(header, value), (header, second)];
            let rejected = http.rejected("tools/call", echo(), &twice).await;
            assert_eq!(rejected, (400, -32020), "{header}: {second}");
        }
    }
    let task = http.task("gated").await;
    let twice = [("mcp-name", task.as_str()), ("mcp-name", "another")];
    let rejected = http
        .rejected("tasks/get", json!({ "taskId": task }), &twice)
        .await;
    assert_eq!(rejected, (400, -32020));
}

#[tokio::test]
async fn mcp_name_of_a_task_is_optional_by_default() {
    // V2-HDR-2, V2-HDR-3.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let task = http.task("gated").await;
    let params = || json!({ "taskId": task });
    let lax = http
        .request_with("tasks/get", params(), &[("mcp-name", "")])
        .await;
    assert_eq!(lax.status, 200);
    let wrong = [("mcp-name", "another-task")];
    assert_eq!(
        http.rejected("tasks/get", params(), &wrong).await,
        (400, -32020)
    );
    let options = HttpOptions::default().with_on_missing_task_name(OnMissingName::Refuse);
    let strict = serve(harness.server.clone(), options).await.unwrap();
    let strict = ModernHttpClient::of(&strict);
    let missing = [("mcp-name", "")];
    assert_eq!(
        strict.rejected("tasks/get", params(), &missing).await,
        (400, -32020)
    );
}

#[tokio::test]
async fn each_error_code_has_its_http_status() {
    // V2-CODE-4, V2-CAP-10, A2-30.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let mut http = ModernHttpClient::of(&server);
    let unknown = json!({ "taskId": "7zzzzzzzzzzzzzzzzzzzzzzzzz" });
    assert_eq!(
        http.rejected("tasks/get", unknown.clone(), &[]).await,
        (200, -32602)
    );
    for gone in [
        "ping",
        "initialize",
        "tasks/list",
        "tasks/result",
        "no/such",
    ] {
        assert_eq!(
            http.rejected(gone, json!({}), &[]).await,
            (404, -32601),
            "{gone}"
        );
    }
    http.can = json!({});
    assert_eq!(
        http.rejected("tasks/get", unknown, &[]).await,
        (400, -32021)
    );
    let must = json!({ "name": "must" });
    assert_eq!(http.rejected("tools/call", must, &[]).await, (400, -32021));
}

#[tokio::test]
async fn the_version_header_is_checked_before_the_version() {
    // V2-VER-1, V2-META-3, V2-ERA-13, A3-8.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let mut params = with_modern_meta(json!({}), json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let rejected = http.post(&message, &[]).await;
    assert_eq!(rejected.status, 400);
    assert_eq!(rejected.json().await["error"]["code"], -32020);
    let rejected = http
        .post(&message, &[("mcp-protocol-version", "v999")])
        .await;
    assert_eq!(rejected.status, 400);
    assert_eq!(rejected.json().await["error"]["code"], -32022);
    for params in [json!({}), json!({ "_meta": {} })] {
        let message =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params });
        let rejected = http.post(&message, &[]).await;
        assert_eq!(rejected.status, 400);
        let rejected = rejected.json().await;
        assert_eq!(
            (&rejected["error"]["code"], &rejected["id"]),
            (&json!(-32602), &json!(7))
        );
    }
}

#[tokio::test]
async fn a_modern_request_belongs_to_no_session() {
    // V2-HTTP-4, V2-HTTP-7, A3-7.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let old = [("mcp-session-id", "unknown"), ("last-event-id", "1-1-1")];
    let listed = http.request_with("tools/list", json!({}), &old).await;
    assert_eq!(listed.status, 200);
    assert_eq!(listed.header("mcp-session-id"), None);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} });
    assert_eq!(http.post(&note, &[]).await.status, 202);
    for method in ["GET", "DELETE"] {
        let rejected = http.http.send(method, &[], b"").await;
        assert_eq!(rejected.status, 405, "{method}");
        assert_eq!(rejected.header("allow"), Some("POST, OPTIONS"), "{method}");
    }
}
