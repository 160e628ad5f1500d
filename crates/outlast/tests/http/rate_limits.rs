//! Callers that send too much.

use std::num::NonZeroU32;
use std::time::Duration;

use outlast::transport::http::{HttpOptions, Token};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::Stage;
use outlast_testkit::mcp::HttpClient as Client;

#[tokio::test]
async fn a_caller_that_sends_too_many_requests_is_told_when_to_come_back() {
    let stage = Stage::with(HttpOptions {
        requests_per_second: NonZeroU32::new(10),
        tokens: vec![Token::new("ada", "a"), Token::new("bob", "b")],
        ..HttpOptions::default()
    })
    .await;
    let caller = |token| Client {
        token,
        ..stage.stranger()
    };
    let [mut ada, mut bob] = [Some("a"), Some("b")].map(caller);
    ada.introduce("2025-11-25").await;
    bob.introduce("2025-11-25").await;
    let mut refused = None;
    for _ in 0..200 {
        let answer = ada.ask("ping", json!({})).await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("200 requests at once are too many");
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let error = refused.json().await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("`requests_per_second`"), "{message}");
    assert_eq!(bob.ask("ping", json!({})).await.status, 200);
    // It may go on after the time it was told.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ada.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn tokens_cannot_be_guessed_without_end() {
    let stage = Stage::with(HttpOptions {
        requests_per_second: NonZeroU32::new(10),
        tokens: vec![Token::new("ada", "a")],
        ..HttpOptions::default()
    })
    .await;
    let guesser = Client {
        token: Some("wrong"),
        ..stage.stranger()
    };
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 200 {
        statuses.push(guesser.ask("ping", json!({})).await.status);
    }
    assert_eq!(statuses.pop(), Some(429));
    assert!(statuses.iter().all(|status| *status == 401));
    // The owner of the token does not wait for the guesser.
    let mut ada = Client {
        token: Some("a"),
        ..stage.stranger()
    };
    ada.introduce("2025-11-25").await;
}

#[tokio::test]
async fn unfinished_bodies_take_a_limited_number_of_bytes_in_all() {
    let stage = Stage::with(HttpOptions {
        body_bytes: 1 << 20,
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let large = json!({ "say": "x".repeat(512 << 10) });
    assert_eq!(client.tool("echo", large.clone()).await.status, 200);
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(unfinished(&client, 300 << 10).await);
    }
    let refused = loop {
        let answer = client.tool("echo", large.clone()).await;
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let error = refused.json().await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("`body_bytes`"), "{message}");
    // Ordinary requests are served, and large ones again when the others are gone.
    assert_eq!(client.ask("ping", json!({})).await.status, 200);
    drop(slow);
    let served = async {
        while client.tool("echo", large.clone()).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let served = tokio::time::timeout(Duration::from_secs(30), served).await;
    served.expect("room in time");
}

/// A request of which `bytes` are sent and the rest is not.
async fn unfinished(client: &Client, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let session = client.session.as_deref().unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        bytes + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may have refused the body before all of it is written.
    let _ = stream.write_all(" ".repeat(bytes).as_bytes()).await;
    stream
}
