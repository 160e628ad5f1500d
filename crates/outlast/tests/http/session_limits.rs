//! The limits of sessions, and which sessions are evicted.

use std::sync::Arc;
use std::time::Duration;

use outlast::task::Policy;
use outlast::transport::http::{Authenticate, BearerTokens, HttpOptions, Token};
use serde_json::json;

use crate::harness::Harness;
use outlast_testkit::eventually;
use outlast_testkit::mcp::HttpClient as Client;
use outlast_testkit::mcp::http::HttpResponse;

#[tokio::test]
async fn the_session_idle_for_longest_is_evicted() {
    let harness = Harness::with(HttpOptions::default().with_max_sessions_per_owner(2)).await;
    let (one, two) = (harness.client().await, harness.client().await);
    pause().await;
    assert_eq!(ping(&one).await, 200);
    let three = harness.client().await;
    assert_eq!(ping(&two).await, 404);
    assert_eq!([ping(&one).await, ping(&three).await], [200; 2]);
}

#[tokio::test]
async fn a_session_with_a_stream_or_task_is_not_evicted() {
    for token in [None, Some("a")] {
        let authenticate = token.map(|secret| BearerTokens::shared([Token::new("ada", secret)]));
        let harness = Harness::with(
            HttpOptions::default()
                .with_max_sessions_per_owner(2)
                .with_authenticate(authenticate),
        )
        .await;
        let (listens, works) = (open(&harness, token).await, open(&harness, token).await);
        let stream = listens.listen(None).await;
        let task = works.task("gated", json!({})).await;
        let rejected = initialize(&harness, token).await;
        assert_eq!(rejected.status, 429);
        assert_eq!(rejected.header("retry-after"), Some("1"));
        let error = rejected.json().await;
        assert_eq!(error["id"], 1);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("`max_sessions_per_owner`"), "{message}");
        assert_eq!([ping(&listens).await, ping(&works).await], [200; 2]);

        // The end of the task, then the end of the stream, free a slot.
        harness.gate.add_permits(1);
        works.until(&task, "completed").await;
        open(&harness, token).await;
        assert_eq!([ping(&listens).await, ping(&works).await], [200, 404]);
        drop(stream);
        eventually("room for another session", async || {
            initialize(&harness, token).await.status == 200
        })
        .await;
    }
}

#[tokio::test]
async fn many_sessions_of_one_caller_affect_no_other() {
    let harness = Harness::with(
        HttpOptions::default()
            .with_max_sessions(8)
            .with_max_sessions_per_owner(5)
            .with_authenticate(tokens()),
    )
    .await;
    let bob = open(&harness, Some("b")).await;
    for _ in 0..30 {
        open(&harness, Some("a")).await;
    }
    assert_eq!(ping(&bob).await, 200);
    // The total limit is reached: a session of the caller with most sessions is evicted.
    let more = [
        open(&harness, Some("b")).await,
        open(&harness, Some("b")).await,
        open(&harness, Some("b")).await,
    ];
    for client in more.iter().chain([&bob]) {
        assert_eq!(ping(client).await, 200);
    }
}

#[tokio::test]
async fn a_new_session_is_rejected_if_all_are_in_use() {
    let harness = Harness::with(
        HttpOptions::default()
            .with_max_sessions(2)
            .with_authenticate(tokens()),
    )
    .await;
    let (one, two) = (
        open(&harness, Some("a")).await,
        open(&harness, Some("a")).await,
    );
    let _streams = (one.listen(None).await, two.listen(None).await);
    let rejected = initialize(&harness, Some("b")).await;
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.header("retry-after"), Some("1"));
    assert_eq!(one.delete_session().await.status, 204);
    open(&harness, Some("b")).await;
}

#[tokio::test]
async fn session_limits_hold_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let options = || {
        HttpOptions::default()
            .with_max_sessions_per_owner(3)
            .with_authenticate(tokens())
    };
    let harness = Harness::on_file(&file, options()).await;
    let works = open(&harness, Some("a")).await;
    let task = works.task("gated", json!({})).await;
    let bob = open(&harness, Some("b")).await;
    pause().await;
    let older = open(&harness, Some("a")).await;
    pause().await;
    let newer = open(&harness, Some("a")).await;
    harness.stop().await;

    let harness = Harness::on_file(&file, options()).await;
    let [works, bob, older, newer] = restart_server(&harness, [works, bob, older, newer]);
    // The oldest session has an open task, which only its record shows.
    let fresh = open(&harness, Some("a")).await;
    assert_eq!(ping(&older).await, 404);
    for client in [&works, &bob, &newer, &fresh] {
        assert_eq!(ping(client).await, 200);
    }
    assert_eq!(works.status(&task).await["result"]["status"], "working");
}

#[tokio::test]
async fn idle_sessions_without_tasks_expire_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let options = |idle| HttpOptions::default().with_session_idle_timeout(idle);
    let harness = Harness::on_file(&file, options(LONG_TIMEOUT)).await;
    let (idle, works) = (harness.client().await, harness.client().await);
    works.task("gated", json!({})).await;
    harness.stop().await;
    pause().await;

    // As if the server had been down for longer than `idle`.
    let harness = Harness::on_file(&file, options(Duration::from_millis(1))).await;
    let [idle, works] = restart_server(&harness, [idle, works]);
    eventually("the idle session is forgotten", async || {
        is_evicted(&idle).await
    })
    .await;
    assert_eq!(ping(&works).await, 200);
}

#[tokio::test]
async fn a_long_ttl_does_not_keep_idle_sessions() {
    // The TTL of tasks does not matter.
    let policy = Policy::default()
        .with_max_ttl(Duration::from_millis(24 * 3_600_000))
        .with_run_limit(Duration::from_millis(24 * 3_600_000));
    let options = HttpOptions::default().with_session_idle_timeout(Duration::from_millis(200));
    let harness = Harness::with_policy(options, policy).await;
    let idle = harness.client().await;
    let listens = harness.client().await;
    let _stream = listens.listen(None).await;
    eventually("the idle session is forgotten", async || {
        is_evicted(&idle).await
    })
    .await;
    assert_eq!(ping(&listens).await, 200);
}

/// Whether a session was evicted. The pause covers two sweeps, because a request uses the session.
async fn is_evicted(client: &Client) -> bool {
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    ping(client).await == 404
}

async fn open(harness: &Harness, token: Option<&'static str>) -> Client {
    let mut client = Client {
        token,
        ..harness.client_without_session()
    };
    client.introduce("2025-11-25").await;
    client
}

async fn initialize(harness: &Harness, token: Option<&'static str>) -> HttpResponse {
    let client = Client {
        token,
        ..harness.client_without_session()
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    });
    client.request("initialize", params).await
}

async fn ping(client: &Client) -> u16 {
    client.request("ping", json!({})).await.status
}

/// The same clients at a restarted server.
fn restart_server<const N: usize>(harness: &Harness, clients: [Client; N]) -> [Client; N] {
    let address = harness.server.local_addr();
    clients.map(|client| Client { address, ..client })
}

fn tokens() -> Arc<dyn Authenticate> {
    BearerTokens::shared([Token::new("ada", "a"), Token::new("bob", "b")])
}

/// The last use of a session has a resolution of a millisecond.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

const LONG_TIMEOUT: Duration = Duration::from_secs(3_600);
