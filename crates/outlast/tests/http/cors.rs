//! Pages in a browser: asked before (preflight), let in if they may, and able to read what they need.

use outlast::transport::http::{HttpOptions, Token};
use serde_json::json;

use crate::harness::Stage;

async fn stage() -> Stage {
    Stage::with(HttpOptions {
        allowed_origins: vec![PAGE.into()],
        tokens: vec![Token::new("ada", "a-secret")],
        ..HttpOptions::default()
    })
    .await
}

#[tokio::test]
async fn a_page_that_may_call_is_told_so_before_it_has_a_token() {
    let stage = stage().await;
    let stranger = stage.stranger();
    let asked = "Content-Type, authorization, MCP-Session-Id, mcp-param-region, x-other";
    let preflight = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", asked),
    ];
    let told = stranger.send("OPTIONS", &preflight, b"").await;
    assert_eq!(told.status, 204);
    assert_eq!(told.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(
        told.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    let headers = told.header("access-control-allow-headers").unwrap();
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
    assert!(told.header("vary").unwrap().contains("origin"));
    // It has no cookies to send along.
    assert_eq!(told.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn a_page_can_read_the_answer_and_the_name_of_its_session() {
    let stage = stage().await;
    let mut client = stage.stranger();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "page", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let body = message.to_string();
    let page = [("origin", PAGE)];
    // The refusal, too: the page must see that it needs a token.
    let refused = client.send("POST", &page, body.as_bytes()).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(PAGE));
    client.token = Some("a-secret");
    let met = client.send("POST", &page, body.as_bytes()).await;
    assert_eq!(met.status, 200);
    assert_eq!(met.header("access-control-allow-origin"), Some(PAGE));
    let exposed = met.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
    client.session = met.header("mcp-session-id").map(str::to_owned);
    let stream = client.send("GET", &page, b"").await;
    assert!(stream.is_stream());
    assert_eq!(stream.header("access-control-allow-origin"), Some(PAGE));
}

#[tokio::test]
async fn a_foreign_page_learns_nothing_and_who_is_no_page_hears_nothing_of_pages() {
    let stage = stage().await;
    let stranger = stage.stranger();
    let preflight = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let refused = stranger.send("OPTIONS", &preflight, b"").await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("access-control-allow-origin"), None);
    // A page whose own name was bent to this address.
    let bent = [("origin", PAGE), ("host", "evil.example")];
    let refused = stranger.send("OPTIONS", &bent, b"").await;
    assert_eq!(refused.status, 403);
    let plain = stranger.ask("initialize", json!({})).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    assert_eq!(plain.header("vary"), None);
}

const PAGE: &str = "https://app.example.com";
