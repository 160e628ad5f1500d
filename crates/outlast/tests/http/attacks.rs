//! Attacks on a server with default settings. `docs/limits.md` has the figures.

use outlast::transport::http::{BearerTokens, HttpOptions, Token};
use outlast_testkit::mcp::HttpClient as Client;
use outlast_testkit::within;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::Harness;

#[tokio::test]
async fn endless_sessions_of_one_token_affect_no_other() {
    let harness = Harness::with(
        HttpOptions::default().with_authenticate(BearerTokens::shared(vec![
            Token::new("ada", "a"),
            Token::new("bob", "b"),
        ])),
    )
    .await;
    let bob = open(&harness, "b").await.expect("a first session");
    let (mut opened, mut rejected) = (Vec::new(), 0);
    for _ in 0..ATTEMPTS {
        match open(&harness, "a").await {
            Ok(client) => opened.push(client),
            Err(status) => {
                assert_eq!(status, 429);
                rejected += 1;
            }
        }
    }
    println!(
        "{ATTEMPTS} attempts: {} opened, {rejected} rejected",
        opened.len()
    );
    // Each session over the limit evicted the owner's longest idle one.
    assert!(opened.len() > HttpOptions::default().max_sessions_per_owner);
    assert_eq!(ping_without_rate_limit(&opened[0]).await, 404);
    let last = opened.last().expect("a session was opened");
    assert_eq!(ping_without_rate_limit(last).await, 200);
    assert_eq!(bob.request("ping", json!({})).await.status, 200);
    assert!(open(&harness, "b").await.is_ok());
}

#[tokio::test]
async fn unfinished_bodies_of_one_caller_affect_no_small_request() {
    let harness = Harness::with(HttpOptions::default()).await;
    let client = harness.client().await;
    let limit = HttpOptions::default().max_unfinished_body_bytes;
    let connections = limit / UNFINISHED_BYTES + 4;
    let mut unfinished = Vec::new();
    for _ in 0..connections {
        unfinished.push(send_unfinished(&client).await);
    }
    let large = json!({ "say": "x".repeat(UNFINISHED_BYTES) });
    let rejected = within("a rejected request", async {
        loop {
            let response = client.tool("echo", large.clone()).await;
            if response.status != 200 {
                break response;
            }
        }
    })
    .await;
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.header("retry-after"), Some("1"));
    assert_eq!(client.request("ping", json!({})).await.status, 200);
    assert!(harness.client().await.session.is_some());
}

/// Opens a session, or returns the status of the response.
async fn open(harness: &Harness, token: &'static str) -> Result<Client, u16> {
    let mut client = Client {
        token: Some(token),
        ..harness.client_without_session()
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    });
    let response = client.request("initialize", params).await;
    if response.status != 200 {
        return Err(response.status);
    }
    client.session = response.header("mcp-session-id").map(Into::into);
    Ok(client)
}

/// The status of a ping, once the rate limit accepts it.
async fn ping_without_rate_limit(client: &Client) -> u16 {
    within("an accepted request", async {
        loop {
            let status = client.request("ping", json!({})).await.status;
            if status != 429 {
                break status;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// A request whose last byte is missing.
async fn send_unfinished(client: &Client) -> TcpStream {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let session = client.session.as_deref().unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        UNFINISHED_BYTES + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may reject the body before it is complete.
    let _ = stream
        .write_all(" ".repeat(UNFINISHED_BYTES).as_bytes())
        .await;
    stream
}

/// Two and a half times the limit of one owner.
const ATTEMPTS: usize = 2_500;

/// The bytes of each unfinished body that are sent.
const UNFINISHED_BYTES: usize = 8 << 20;
