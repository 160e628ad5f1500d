//! Clients that do what no client should.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use outlast_testkit::mcp::HttpClient;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Stage;

#[tokio::test]
async fn one_that_drops_every_stream_after_the_question_is_asked_until_it_answers() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("ask", json!({})).await;
    let mut questions = Vec::new();
    for _ in 0..5 {
        let mut waiting = client.result(&task).await;
        let (_, question) = waiting.told("elicitation/create").await;
        questions.push(question);
        drop(waiting);
        // The other end notices.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    questions.dedup();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(
        client.status(&task).await["result"]["status"],
        "input_required"
    );
    client.respond(&questions[0]["id"], "Ada").await;
    client.until(&task, "completed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn one_that_never_asks_for_a_result_gets_everything_where_it_listens() {
    // A1-4: the field has such clients.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("ask", json!({})).await;
    let mut words = Vec::new();
    while words.last().is_none_or(|word| word != "completed") {
        let (_, said) = general.message().await.unwrap();
        match said["method"].as_str().unwrap() {
            "elicitation/create" => client.respond(&said["id"], "Bob").await,
            "notifications/tasks/status" => {
                assert_eq!(said["params"]["taskId"], task);
                words.push(said["params"]["status"].as_str().unwrap().to_owned());
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(words, ["input_required", "working", "completed"]);
}

#[tokio::test]
async fn one_that_repeats_its_wish_for_a_task_everywhere_is_served() {
    // V1-META-5, A1-29: the TypeScript client does that.
    let stage = Stage::new().await;
    let client = stage.client().await;
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
    stage.gate.add_permits(1);
    let last = client.ask("tasks/result", params.clone()).await;
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
async fn one_that_answers_for_another_is_not_heard() {
    let stage = Stage::new().await;
    let (one, other) = (stage.client().await, stage.client().await);
    let task = one.task("ask", json!({})).await;
    let mut waiting = one.result(&task).await;
    let (_, question) = waiting.told("elicitation/create").await;
    other.respond(&question["id"], "Mallory").await;
    assert_eq!(
        one.status(&task).await["result"]["status"],
        "input_required"
    );
    one.respond(&question["id"], "Ada").await;
    // The second answer to a question is one too many.
    one.respond(&question["id"], "Eve").await;
    let last = waiting.rest().await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test]
async fn one_that_sends_100_mb_is_stopped_and_nobody_else_notices() {
    let stage = Stage::new().await;
    let client = stage.client().await;
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
    assert_eq!(client.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn many_that_send_a_byte_at_a_time_are_shown_the_door_and_nobody_else_notices() {
    let stage = Stage::with(HttpOptions {
        patience: Duration::from_millis(200),
        ..HttpOptions::default()
    })
    .await;
    let address = stage.server.local_addr();
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
            // Whatever is said at the end, the connection is closed.
            let mut said = Vec::new();
            let reading = async { drop(read.read_to_end(&mut said).await) };
            tokio::select! {
                () = sending => {}
                () = reading => {}
            }
        });
    }
    let client = HttpClient::meet(address).await;
    while dribbling.join_next().await.is_some() {
        assert_eq!(client.ask("ping", json!({})).await.status, 200);
    }
}
