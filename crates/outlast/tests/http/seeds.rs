//! Requirements of seeds 002 and 003 over HTTP: the stream of an input request, the TTL of a
//! session, and the sample server.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use outlast::task::Policy;
use outlast::transport::http::HttpOptions;
use outlast::wire::Timestamp;
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::{RunCommand, ServerProcess, eventually, example};
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn input_requests_prefer_the_wait_and_statuses_the_general_stream() {
    // S2-61: both streams are open when the input request is made.
    let harness = Harness::new().await;
    let client = harness.client().await;
    let mut general = client.listen(None).await;
    let task = client.task("ask_later", json!({})).await;
    let mut waiting = client.result(&task).await;
    assert!(waiting.is_stream());
    harness.gate.add_permits(1);
    let (_, input_request) = waiting.next_message("elicitation/create").await;
    client.respond(&input_request["id"], "Ada").await;
    let rest = waiting.rest().await;
    assert_eq!(rest.last().unwrap()["result"]["content"][0]["text"], "Ada");
    for message in &rest {
        assert_ne!(message["method"], "notifications/tasks/status");
    }
    loop {
        let (_, message) = general.message().await.expect("the stream is open");
        assert_eq!(message["method"], "notifications/tasks/status", "{message}");
        if message["params"]["status"] == "completed" {
            return;
        }
    }
}

#[tokio::test]
async fn a_session_ends_when_its_last_ended_task_has_expired() {
    // S2-49: the task of one session expires soon, that of the other later.
    let options = HttpOptions::default().with_session_idle_timeout(Duration::from_secs(3));
    let harness = Harness::with(options).await;
    let (bare, short, long) = (
        harness.client().await,
        harness.client().await,
        harness.client().await,
    );
    harness.gate.add_permits(2);
    create_with_ttl(&short, 1_000).await;
    let kept = create_with_ttl(&long, 3_600_000).await;
    // Requests would keep the sessions, so their records are read instead.
    eventually("two sessions end", async || {
        let now = Timestamp(u64::MAX - 1);
        let records = harness.store.records("session", None, now).await;
        records.unwrap().len() == 1
    })
    .await;
    for ended in [bare, short] {
        assert_eq!(ended.request("ping", json!({})).await.status, 404);
    }
    assert_eq!(long.status(&kept).await["result"]["status"], "completed");
}

/// Creates a task that ends at once, and returns its id.
async fn create_with_ttl(client: &HttpClient, ttl_ms: u64) -> String {
    let params = json!({ "name": "gated", "arguments": {}, "task": { "ttl": ttl_ms } });
    let created = client.call("tools/call", params).await;
    let task = created["result"]["task"]["taskId"].as_str();
    task.unwrap_or_else(|| panic!("no task: {created}"))
        .to_owned()
}

#[tokio::test]
async fn a_session_with_a_task_outlives_one_without() {
    // S2-49, S2-101: the idle time is over for both. A running task is kept, and so is its session.
    let options = HttpOptions::default().with_session_idle_timeout(Duration::from_millis(1));
    let policy = Policy::default()
        .with_default_ttl(Duration::from_millis(4_000))
        .with_max_ttl(Duration::from_millis(4_000));
    let harness = Harness::with_policy(options, policy).await;
    let (idle, busy) = (harness.client().await, harness.client().await);
    let task = busy.task("gated", json!({})).await;
    // Twice the maximum TTL, and time for the next sweep.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(idle.request("tools/list", json!({})).await.status, 404);
    assert_eq!(busy.status(&task).await["result"]["status"], "working");
    harness.gate.add_permits(1);
    let result = busy.result(&task).await;
    let last = if result.is_stream() {
        let mut result = result;
        result.rest().await.pop().unwrap()
    } else {
        result.json().await
    };
    assert_eq!(last["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn the_tasks_server_waits_before_a_plain_response() {
    // S3-12.
    let server = ServerProcess::example("tasks_server", &["--port", "0"]);
    let client = HttpClient::connect(server.address()).await;
    let began = Instant::now();
    let arguments = json!({ "data": "tides", "durationSeconds": 1 });
    let mut response = client.tool("LongRunningAnalysis", arguments).await;
    let result = if response.is_stream() {
        response.rest().await.pop().unwrap()
    } else {
        response.json().await
    };
    assert_eq!(
        result["result"]["content"][0]["text"],
        "Analysis complete for: tides"
    );
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[test]
fn the_tasks_server_listens_on_the_configured_port() {
    // S3-14: the port is in use, so the server names it in its error.
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = held.local_addr().unwrap();
    let ended = Command::new(example("tasks_server"))
        .args(["--port", &address.port().to_string()])
        .run();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(words.contains(&address.to_string()), "{words}");
}

#[test]
fn the_tasks_server_listens_on_localhost_5000_by_default() {
    // S3-14: the port is in use, by this test or by another process, so the server names it in its
    // error.
    let _held = TcpListener::bind(("127.0.0.1", 5000));
    let ended = Command::new(example("tasks_server")).run();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success());
    assert!(words.contains("127.0.0.1:5000"), "{words}");
}
