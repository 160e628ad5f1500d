//! Health checks: `/readyz` is 503 exactly while a new task would be refused, and says why.

use std::sync::Arc;
use std::time::Duration;

use outlast::engine::store::{Health, Reason};
use outlast::engine::{MemoryStore, Policy, Quota};
use outlast::transport::http::HttpOptions;
use outlast_testkit::FaultyStore;
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::harness::Stage;

/// The status and the body of a plain GET on a connection of its own.
pub(crate) async fn get(client: &HttpClient, path: &str) -> (u16, String) {
    let host = client.address;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(LIMIT, stream.read_to_string(&mut answer)).await;
    read.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// Whether the server says that it is ready; it is alive in any case.
async fn ready(client: &HttpClient) -> Result<(), String> {
    assert_eq!(get(client, "/healthz").await, (200, "ok\n".to_owned()));
    let (status, body) = get(client, "/readyz").await;
    assert_eq!(body.lines().count(), 1, "{body:?}");
    match status {
        200 => {
            assert_eq!(body, "ready\n");
            Ok(())
        }
        503 => Err(body.strip_prefix("not ready: ").unwrap().to_owned()),
        other => panic!("{other} {body}"),
    }
}

/// Waits until the server is ready, or is not.
async fn until_ready(client: &HttpClient, expected: bool) {
    let reached = timeout(LIMIT, async {
        while ready(client).await.is_ok() != expected {
            sleep(Duration::from_millis(10)).await;
        }
    });
    reached.await.unwrap();
}

/// The answer to a call that asks for a task.
async fn create(client: &HttpClient) -> Value {
    let params = json!({ "name": "gated", "arguments": {}, "task": {} });
    client.call("tools/call", params).await
}

/// What a request gets that is not served now.
async fn assert_turned_away(client: &HttpClient, method: &str) {
    let answer = client.ask(method, json!({ "name": "echo" })).await;
    assert_eq!(answer.status, 503, "{method}");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let body = answer.json().await;
    assert_eq!(body["error"]["code"], -32603, "{body}");
    assert_eq!(body["id"], 1, "{body}");
}

#[tokio::test]
async fn a_server_is_ready_exactly_while_its_store_takes_new_tasks() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let options = HttpOptions::default();
    let stage = Stage::on(Arc::new(store), options, Policy::default()).await;
    let client = stage.client().await;
    let reason = || Reason::new("the disk\nis full");
    for (health, why) in [
        (Health::Ready, None),
        (
            Health::NoRoom(reason()),
            Some("the store has no room: the disk is full\n"),
        ),
        (Health::Ready, None),
        (
            Health::Down(reason()),
            Some("the store cannot be written: the disk is full\n"),
        ),
        (Health::Closed, Some("the store is closed\n")),
        (Health::Ready, None),
    ] {
        faults.report(health.clone());
        let created = create(&client).await;
        let refused = created["error"]["code"] == -32603;
        assert_eq!(refused, why.is_some(), "{health:?}: {created}");
        let ready = ready(&client).await;
        assert_eq!(ready.as_ref().err().map(String::as_str), why, "{health:?}");
    }
}

#[tokio::test]
async fn a_server_that_has_as_many_tasks_as_it_may_is_not_ready() {
    let quota = Policy::default().quota;
    for (setting, quota) in [
        (
            "quota.retained",
            Quota {
                retained: 1,
                ..quota
            },
        ),
        ("quota.open", Quota { open: 1, ..quota }),
    ] {
        let policy = Policy {
            quota,
            ..Policy::default()
        };
        let stage = Stage::with_policy(HttpOptions::default(), policy).await;
        let client = stage.client().await;
        assert_eq!(ready(&client).await, Ok(()));
        create(&client).await;
        let why = ready(&client).await.unwrap_err();
        assert!(why.contains(setting), "{why}");
        assert_eq!(create(&client).await["error"]["code"], -32603);
    }
}

#[tokio::test]
async fn a_server_that_drains_refuses_new_requests_and_serves_those_about_its_tasks() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    let draining = tokio::spawn(stage.engine.clone().shutdown(LIMIT));
    until_ready(&client, false).await;
    let why = ready(&client).await.unwrap_err();
    assert_eq!(why, "the server is shutting down\n");
    for method in ["tools/call", "tools/list", "resources/read"] {
        assert_turned_away(&client, method).await;
    }
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    client.call("ping", json!({})).await;
    stage.client().await;
    stage.gate.add_permits(1);
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "through");
    draining.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_closes_answers_health_checks_until_the_last_request_is_done() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.json().await }
    });
    let begun = async {
        while stage.engine.running() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, begun).await.unwrap();
    let closing = tokio::spawn(stage.server.shutdown());
    until_ready(&client, false).await;
    assert_turned_away(&client, "tools/call").await;
    assert_turned_away(&client, "ping").await;
    stage.gate.add_permits(1);
    let answer = waiting.await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "through");
    closing.await.unwrap();
}

#[tokio::test]
async fn connections_beyond_the_limit_get_health_checks_and_503() {
    let options = HttpOptions {
        connections: 3,
        ..HttpOptions::default()
    };
    let stage = Stage::with(options).await;
    let client = stage.client().await;
    until_ready(&client, true).await;
    let mut idle = Vec::new();
    // Some of them are among those that are turned away: they are closed to make room.
    for _ in 0..40 {
        idle.push(TcpStream::connect(client.address).await.unwrap());
    }
    until_ready(&client, false).await;
    let why = ready(&client).await.unwrap_err();
    assert_eq!(why, "all 3 connections are in use\n");
    assert_turned_away(&client, "tools/call").await;
    drop(idle);
    until_ready(&client, true).await;
    client.task("gated", json!({})).await;
}

/// How long a test waits for anything.
const LIMIT: Duration = Duration::from_secs(20);
