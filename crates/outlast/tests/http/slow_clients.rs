//! Slow and idle clients.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::harness::Harness;

#[tokio::test]
async fn a_slow_reader_gets_all_of_a_large_response() {
    let harness = Harness::with(HttpOptions::default().with_client_timeout(HEAD_TIMEOUT)).await;
    let client = harness.client().await;
    let session = client.session.unwrap();
    for accept in ["application/json", "text/event-stream"] {
        let mut stream = connect(client.address).await;
        let request = call(&session, accept, RESPONSE_BYTES);
        // The server reads while the client still writes.
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = 0;
        let mut piece = vec![0; RESPONSE_BYTES / READ_STEPS];
        while received < RESPONSE_BYTES {
            let read = timeout(WAIT_LIMIT, stream.read_exact(&mut piece)).await;
            let read = read.expect("bytes in time");
            received += read.unwrap_or_else(|error| panic!("{accept} {received}: {error}"));
            sleep(HEAD_TIMEOUT / 8).await;
        }
    }
}

#[tokio::test]
async fn a_stalled_reader_is_disconnected() {
    let harness = Harness::with(HttpOptions::default().with_client_timeout(HEAD_TIMEOUT)).await;
    let client = harness.client().await;
    let mut stream = connect(client.address).await;
    let request = call(&client.session.unwrap(), "application/json", RESPONSE_BYTES);
    stream.write_all(request.as_bytes()).await.unwrap();
    sleep(HEAD_TIMEOUT * 4).await;
    let mut all = Vec::new();
    let read = timeout(WAIT_LIMIT, stream.read_to_end(&mut all)).await;
    // Reset or closed: in either case most of the response is missing.
    let _ = read.expect("the connection ends in time");
    assert!(all.len() < RESPONSE_BYTES / 2, "{}", all.len());
}

/// A connection with a small receive buffer.
async fn connect(address: std::net::SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(address).await.unwrap()
}

/// A request whose response has at least `bytes`.
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

const HEAD_TIMEOUT: Duration = Duration::from_secs(1);
const RESPONSE_BYTES: usize = 4 << 20;

/// How many pieces a response is read in: four times the timeout in total.
const READ_STEPS: usize = 32;

/// The limit of every wait.
const WAIT_LIMIT: Duration = Duration::from_secs(30);
