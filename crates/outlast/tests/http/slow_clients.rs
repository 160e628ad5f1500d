//! Clients that are slow and clients that do nothing.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::harness::Stage;

#[tokio::test]
async fn a_slow_reader_of_a_large_answer_gets_all_of_it() {
    let stage = Stage::with(HttpOptions {
        patience: PATIENCE,
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let session = client.session.unwrap();
    for accept in ["application/json", "text/event-stream"] {
        let mut stream = connect(client.address).await;
        let request = call(&session, accept, ANSWER_BYTES);
        // The server reads while the client still writes.
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = 0;
        let mut piece = vec![0; ANSWER_BYTES / STEPS];
        while received < ANSWER_BYTES {
            let read = timeout(LIMIT, stream.read_exact(&mut piece)).await;
            let read = read.expect("bytes in time");
            received += read.unwrap_or_else(|error| panic!("{accept} {received}: {error}"));
            sleep(PATIENCE / 8).await;
        }
    }
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_disconnected() {
    let stage = Stage::with(HttpOptions {
        patience: PATIENCE,
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let mut stream = connect(client.address).await;
    let request = call(&client.session.unwrap(), "application/json", ANSWER_BYTES);
    stream.write_all(request.as_bytes()).await.unwrap();
    sleep(PATIENCE * 4).await;
    let mut all = Vec::new();
    let read = timeout(LIMIT, stream.read_to_end(&mut all)).await;
    // Reset or closed: in either case most of the answer is missing.
    let _ = read.expect("the end in time");
    assert!(all.len() < ANSWER_BYTES / 2, "{}", all.len());
}

/// A connection whose reader takes little at a time.
async fn connect(address: std::net::SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(address).await.unwrap()
}

/// A request whose answer has at least `bytes`.
fn call(session: &str, accept: &str, bytes: usize) -> String {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "say": "x".repeat(bytes) } },
    })
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\ncontent-type: application/json\r\n\
         mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const PATIENCE: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 4 << 20;

/// In how many pieces an answer is read: it takes four times the patience in all.
const STEPS: usize = 32;

/// A test that waits longer fails.
const LIMIT: Duration = Duration::from_secs(30);
