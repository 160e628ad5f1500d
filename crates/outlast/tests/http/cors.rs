//! CORS: preflight requests, allowed origins, and the headers that a page may read.

use outlast::transport::http::{BearerTokens, HttpOptions, Token};
use serde_json::json;

use crate::harness::Harness;

async fn harness() -> Harness {
    Harness::with(
        HttpOptions::default()
            .with_allowed_origins(vec![PAGE_ORIGIN.into()])
            .with_authenticate(BearerTokens::shared(vec![Token::new("ada", "a-secret")])),
    )
    .await
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_needs_no_token() {
    let harness = harness().await;
    let stranger = harness.client_without_session();
    let requested = "Content-Type, authorization, MCP-Session-Id, mcp-param-region, x-other";
    let preflight = [
        ("origin", PAGE_ORIGIN),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", requested),
    ];
    let response = stranger.send("OPTIONS", &preflight, b"").await;
    assert_eq!(response.status, 204);
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some(PAGE_ORIGIN)
    );
    assert_eq!(
        response.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    let headers = response.header("access-control-allow-headers").unwrap();
    let allowed: Vec<_> = headers.split(", ").collect();
    for needed in [
        "accept",
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-param-region",
    ] {
        assert!(allowed.contains(&needed), "{needed}: {headers}");
    }
    assert!(!allowed.contains(&"x-other"), "{headers}");
    assert!(response.header("vary").unwrap().contains("origin"));
    // The server uses no cookies.
    assert_eq!(response.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn an_allowed_page_can_read_response_and_session_id() {
    let harness = harness().await;
    let mut client = harness.client_without_session();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "page", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let body = message.to_string();
    let page = [("origin", PAGE_ORIGIN)];
    // The rejection is readable, too: the page must see that it needs a token.
    let rejected = client.send("POST", &page, body.as_bytes()).await;
    assert_eq!(rejected.status, 401);
    assert_eq!(
        rejected.header("access-control-allow-origin"),
        Some(PAGE_ORIGIN)
    );
    client.token = Some("a-secret");
    let met = client.send("POST", &page, body.as_bytes()).await;
    assert_eq!(met.status, 200);
    assert_eq!(met.header("access-control-allow-origin"), Some(PAGE_ORIGIN));
    let exposed = met.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
    client.session = met.header("mcp-session-id").map(str::to_owned);
    let stream = client.send("GET", &page, b"").await;
    assert!(stream.is_stream());
    assert_eq!(
        stream.header("access-control-allow-origin"),
        Some(PAGE_ORIGIN)
    );
}

#[tokio::test]
async fn only_allowed_origins_get_cors_headers() {
    let harness = harness().await;
    let stranger = harness.client_without_session();
    let preflight = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let rejected = stranger.send("OPTIONS", &preflight, b"").await;
    assert_eq!(rejected.status, 403);
    assert_eq!(rejected.header("access-control-allow-origin"), None);
    // DNS rebinding: the host name is foreign.
    let bent = [("origin", PAGE_ORIGIN), ("host", "evil.example")];
    let rejected = stranger.send("OPTIONS", &bent, b"").await;
    assert_eq!(rejected.status, 403);
    let plain = stranger.request("initialize", json!({})).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    assert_eq!(plain.header("vary"), None);
}

const PAGE_ORIGIN: &str = "https://app.example.com";
