//! Clients that send too many requests or bytes.

use std::num::NonZeroU32;
use std::time::Duration;

use outlast::transport::http::{BearerTokens, HttpOptions, Token};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::Harness;
use outlast_testkit::mcp::HttpClient as Client;

#[tokio::test]
async fn too_many_requests_get_429_with_retry_after() {
    let harness = Harness::with(
        HttpOptions::default()
            .with_max_requests_per_second(NonZeroU32::new(10))
            .with_authenticate(BearerTokens::shared(vec![
                Token::new("ada", "a"),
                Token::new("bob", "b"),
            ])),
    )
    .await;
    let caller = |token| Client {
        token,
        ..harness.client_without_session()
    };
    let [mut ada, mut bob] = [Some("a"), Some("b")].map(caller);
    ada.introduce("2025-11-25").await;
    bob.introduce("2025-11-25").await;
    let mut rejected = None;
    for _ in 0..200 {
        let response = ada.request("ping", json!({})).await;
        if response.status != 200 {
            rejected = Some(response);
            break;
        }
    }
    let rejected = rejected.expect("200 requests at once are too many");
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.header("retry-after"), Some("1"));
    let error = rejected.json().await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("`max_requests_per_second`"), "{message}");
    assert_eq!(bob.request("ping", json!({})).await.status, 200);
    // It may continue after `Retry-After`.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ada.request("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn guesses_of_tokens_are_limited() {
    let harness = Harness::with(
        HttpOptions::default()
            .with_max_requests_per_second(NonZeroU32::new(10))
            .with_authenticate(BearerTokens::shared(vec![Token::new("ada", "a")])),
    )
    .await;
    let guesser = Client {
        token: Some("wrong"),
        ..harness.client_without_session()
    };
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 200 {
        statuses.push(guesser.request("ping", json!({})).await.status);
    }
    assert_eq!(statuses.pop(), Some(429));
    assert!(statuses.iter().all(|status| *status == 401));
    // The owner of the token is not limited by the guesses.
    let mut ada = Client {
        token: Some("a"),
        ..harness.client_without_session()
    };
    ada.introduce("2025-11-25").await;
}

#[tokio::test]
async fn unfinished_bodies_have_a_total_byte_limit() {
    let harness =
        Harness::with(HttpOptions::default().with_max_unfinished_body_bytes(1 << 20)).await;
    let client = harness.client().await;
    let large = json!({ "say": "x".repeat(512 << 10) });
    assert_eq!(client.tool("echo", large.clone()).await.status, 200);
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(unfinished(&client, 300 << 10).await);
    }
    let rejected = loop {
        let response = client.tool("echo", large.clone()).await;
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.header("retry-after"), Some("1"));
    let error = rejected.json().await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("`max_unfinished_body_bytes`"), "{message}");
    // Small requests are served, and large ones again when the unfinished ones are closed.
    assert_eq!(client.request("ping", json!({})).await.status, 200);
    drop(slow);
    let served = async {
        while client.tool("echo", large.clone()).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let served = tokio::time::timeout(Duration::from_secs(30), served).await;
    served.expect("a large request is served in time");
}

/// A request of which only `bytes` are sent.
async fn unfinished(client: &Client, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let session = client.session.as_deref().unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        bytes + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may reject the body before it is complete.
    let _ = stream.write_all(" ".repeat(bytes).as_bytes()).await;
    stream
}
