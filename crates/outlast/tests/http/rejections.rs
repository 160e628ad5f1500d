//! Requests that are rejected.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::http::{self as bytes, HttpResponse};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::Harness;

#[tokio::test]
async fn a_foreign_origin_or_host_is_rejected() {
    // V1-HTTP-2.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let origin = [("origin", "http://evil.example")];
    for method in ["GET", "POST", "DELETE", "OPTIONS"] {
        let rejected = client.send(method, &origin, PING).await;
        assert_eq!(rejected.status, 403);
        let body = rejected.json().await;
        assert!(body.get("id").is_none() && body.get("error").is_some());
    }
    let host = [("host", "evil.example")];
    assert_eq!(client.send("POST", &host, PING).await.status, 403);
    let absolute = b"POST http://evil.example/mcp HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(bytes::send(client.address, absolute).await.status, 403);
    let local = [("origin", "http://localhost:6274")];
    assert_eq!(client.send("POST", &local, PING).await.status, 200);
}

#[tokio::test]
async fn a_malformed_or_repeated_host_is_rejected() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    for malformed in [
        "localhost:80@evil.com",
        "evil.com@localhost",
        "localhost:x",
        "",
    ] {
        let host = [("host", malformed)];
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let rejected = client.send(method, &host, PING).await;
            assert_eq!(rejected.status, 400, "{method} {malformed}");
        }
    }
    for second in ["localhost", "evil.com"] {
        let hosts = [("host", "localhost"), ("host", second)];
        assert_eq!(client.send("POST", &hosts, PING).await.status, 400);
    }
    let page = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.com\r\n\r\n";
    assert_eq!(bytes::send(client.address, page).await.status, 400);
}

#[tokio::test]
async fn a_repeated_header_with_one_value_is_rejected() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let session = client.session.clone().unwrap();
    for (name, value) in [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
        ("content-type", "application/json"),
        ("origin", "http://localhost"),
        ("authorization", "Bearer x"),
    ] {
        let twice = [(name, value), (name, value)];
        let response = client.send("POST", &twice, PING).await;
        // Without configured tokens `authorization` is ignored.
        let expected = if name == "authorization" { 200 } else { 400 };
        assert_eq!(response.status, expected, "{name}");
    }
    let twice = [("last-event-id", "1-1-1"), ("last-event-id", "1-1-2")];
    assert_eq!(client.send("GET", &twice, b"").await.status, 400);
    let session = [("mcp-session-id", &*session), ("mcp-session-id", "other")];
    assert_eq!(client.send("DELETE", &session, b"").await.status, 400);
    // `Accept` is a list and may be repeated.
    let accept = [
        ("accept", "application/json"),
        ("accept", "text/event-stream"),
    ];
    assert_eq!(client.send("POST", &accept, PING).await.status, 200);
}

#[tokio::test]
async fn an_unsupported_version_is_rejected() {
    // V1-HTTP-9.
    let harness = Harness::new().await;
    let client = harness.client().await;
    for odd in ["1999-01-01", "nonsense", "2026-07-29"] {
        let stated = [("mcp-protocol-version", odd)];
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(client.send(method, &stated, PING).await.status, 400);
        }
    }
    for fine in ["", "2025-06-18"] {
        let stated = [("mcp-protocol-version", fine)];
        assert_eq!(client.send("POST", &stated, PING).await.status, 200);
    }
}

#[tokio::test]
async fn malformed_json_gets_an_error_response() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":{}{}}}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let cases: [(&[u8], i64); 6] = [
        (b"", -32700),
        (b"hello", -32700),
        (b"\xff\xfe", -32700),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (deep.as_bytes(), -32600),
    ];
    for who in [&client, &harness.client_without_session()] {
        for (body, code) in cases {
            let response = who.post_bytes(body).await;
            assert_eq!(response.status, 400);
            assert_eq!(response.json().await["error"]["code"], code);
        }
    }
    assert_eq!(client.request("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_body_must_be_json_and_not_too_large() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    for odd in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let stated = [("content-type", odd)];
        assert_eq!(client.send("POST", &stated, PING).await.status, 415);
    }
    let length = (100 << 20).to_string();
    let large = [("content-length", length.as_str())];
    let rejected = client.send("POST", &large, b"{").await;
    assert_eq!(rejected.status, 413);
    assert!(rejected.json().await.get("error").is_some());
    // The same without `Content-Length`.
    let chunked = [("transfer-encoding", "chunked"), ("content-length", "")];
    let piece = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20)).repeat(17);
    assert_eq!(
        client.send("POST", &chunked, piece.as_bytes()).await.status,
        413
    );
}

#[tokio::test]
async fn the_endpoint_has_one_path_and_three_methods() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let rejected = client.send("PUT", &[], PING).await;
    assert_eq!(rejected.status, 405);
    assert_eq!(rejected.header("allow"), Some("GET, POST, DELETE, OPTIONS"));
    let elsewhere = b"POST /other HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(bytes::send(client.address, elsewhere).await.status, 404);
}

#[tokio::test]
async fn an_incomplete_request_times_out() {
    let harness =
        Harness::with(HttpOptions::default().with_client_timeout(Duration::from_millis(100))).await;
    let address = harness.server.local_addr();
    let client = HttpClient::connect(address).await;
    let mut stream = client.listen(None).await;
    let mut head = TcpStream::connect(address).await.unwrap();
    head.write_all(b"POST /mcp HTTP/1.1\r\nhost: local")
        .await
        .unwrap();
    assert!(HttpResponse::read(head).await.is_none());
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(b"").await.unwrap();
    assert!(HttpResponse::read(silent).await.is_none());
    let length = [("content-length", "100")];
    assert_eq!(client.send("POST", &length, b"{").await.status, 408);
    // A listening client does not time out.
    assert_eq!(stream.event().await.unwrap().message, None);
    stream.silence().await;
}

#[tokio::test]
async fn an_endless_head_is_rejected() {
    let harness = Harness::new().await;
    let address = harness.server.local_addr();
    let request = format!("POST /mcp HTTP/1.1\r\nhost: {}", "x".repeat(1 << 20));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    if let Some(response) = HttpResponse::read(stream).await {
        assert_eq!(response.status, 431);
    }
    harness.client().await;
}

#[tokio::test]
async fn an_unexpected_response_is_accepted_and_ignored() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    for id in [json!("unknown.1"), json!(7)] {
        client.respond(&id, "x").await;
    }
    let broken = json!({ "jsonrpc": "2.0", "id": "q", "result": 7 });
    let rejected = client.post(&broken).await;
    assert_eq!(rejected.status, 400);
    assert!(rejected.json().await.get("id").is_none());
}

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
