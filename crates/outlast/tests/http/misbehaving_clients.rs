//! Clients that violate the protocol or behave unusually.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Harness;

#[tokio::test]
async fn an_input_request_is_repeated_until_it_has_a_response() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("ask", json!({})).await;
    let mut input_requests = Vec::new();
    for _ in 0..5 {
        let mut waiting = client.result(&task).await;
        let (_, input_request) = waiting.next_message("elicitation/create").await;
        input_requests.push(input_request);
        waiting.disconnect().await;
    }
    input_requests.dedup();
    assert_eq!(input_requests.len(), 1, "{input_requests:?}");
    assert_eq!(
        client.status(&task).await["result"]["status"],
        "input_required"
    );
    client.respond(&input_requests[0]["id"], "Ada").await;
    client.until(&task, "completed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn without_tasks_result_all_events_use_the_general_stream() {
    // A1-4: such clients exist.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("ask", json!({})).await;
    let mut words = Vec::new();
    while words.last().is_none_or(|word| word != "completed") {
        let (_, received) = general.message().await.unwrap();
        match received["method"].as_str().unwrap() {
            "elicitation/create" => client.respond(&received["id"], "Bob").await,
            "notifications/tasks/status" => {
                assert_eq!(received["params"]["taskId"], task);
                words.push(received["params"]["status"].as_str().unwrap().to_owned());
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(words, ["input_required", "working", "completed"]);
}

#[tokio::test]
async fn a_task_member_on_task_methods_is_ignored() {
    // V1-META-5, A1-29: the TypeScript client does that.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let task = client.task("gated", json!({})).await;
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "another" } });
    let params = json!({ "taskId": task, "task": { "ttl": 1 }, "_meta": related });
    let got = client.call("tasks/get", params.clone()).await;
    assert_eq!(got["result"]["taskId"], task);
    assert_ne!(got["result"]["ttl"], 1);
    let listed = client
        .call("tasks/list", json!({ "task": {}, "_meta": related }))
        .await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task);
    harness.gate.add_permits(1);
    let last = client.request("tasks/result", params.clone()).await;
    let last = if last.is_stream() {
        { last }.rest().await.pop().unwrap()
    } else {
        last.json().await
    };
    assert_eq!(last["result"]["content"][0]["text"], "through");
    let over = client.call("tasks/cancel", params).await;
    assert_eq!(over["error"]["code"], -32602);
}

#[tokio::test]
async fn an_input_response_of_another_session_is_ignored() {
    let harness = Harness::new().await;
    let (one, other) = (harness.client().await, harness.client().await);
    let task = one.task("ask", json!({})).await;
    let mut waiting = one.result(&task).await;
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    other.respond(&input_request["id"], "Mallory").await;
    assert_eq!(
        one.status(&task).await["result"]["status"],
        "input_required"
    );
    one.respond(&input_request["id"], "Ada").await;
    // Only the first response counts.
    one.respond(&input_request["id"], "Eve").await;
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn a_body_of_100_mb_affects_no_other_client() {
    let harness = Harness::new().await;
    let client = harness.client().await;
    let session = client.session.clone().unwrap();
    for length in ["content-length: 104857600", "transfer-encoding: chunked"] {
        let mut stream = TcpStream::connect(client.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-session-id: {session}\r\n{length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece = if length.starts_with("content") {
            " ".repeat(1 << 20)
        } else {
            format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20))
        };
        let mut sent = 0;
        while sent < 100 && stream.write_all(piece.as_bytes()).await.is_ok() {
            sent += 1;
        }
        assert!(sent < 100, "all of it was read");
    }
    assert_eq!(client.request("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn slow_senders_are_disconnected_and_affect_no_other_client() {
    let harness =
        Harness::with(HttpOptions::default().with_client_timeout(Duration::from_millis(200))).await;
    let address = harness.server.local_addr();
    let mut dribbling = tokio::task::JoinSet::new();
    for _ in 0..50 {
        dribbling.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut read, mut write) = stream.into_split();
            let head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
            let bytes = head.iter().copied().chain(std::iter::repeat(b'x'));
            let sending = async {
                for byte in bytes {
                    if write.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            // With or without a response, the connection is closed.
            let mut received = Vec::new();
            let reading = async { drop(read.read_to_end(&mut received).await) };
            tokio::select! {
                () = sending => {}
                () = reading => {}
            }
        });
    }
    let client = HttpClient::connect(address).await;
    while dribbling.join_next().await.is_some() {
        assert_eq!(client.request("ping", json!({})).await.status, 200);
    }
}
