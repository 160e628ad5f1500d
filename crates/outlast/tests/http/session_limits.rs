//! How many sessions there may be, and which are forgotten.

use std::time::Duration;

use outlast::engine::Policy;
use outlast::transport::http::{HttpOptions, Token};
use serde_json::json;

use crate::harness::Stage;
use outlast_testkit::eventually;
use outlast_testkit::mcp::HttpClient as Client;
use outlast_testkit::mcp::http::Answer;

#[tokio::test]
async fn the_session_that_is_idle_for_longest_makes_room() {
    let stage = Stage::with(HttpOptions {
        sessions_per_owner: 2,
        ..HttpOptions::default()
    })
    .await;
    let (one, two) = (stage.client().await, stage.client().await);
    pause().await;
    assert_eq!(ping(&one).await, 200);
    let three = stage.client().await;
    assert_eq!(ping(&two).await, 404);
    assert_eq!([ping(&one).await, ping(&three).await], [200; 2]);
}

#[tokio::test]
async fn a_session_with_a_stream_or_an_open_task_never_makes_room() {
    for tokens in [Vec::new(), vec![Token::new("ada", "a")]] {
        let token = tokens.first().map(|_| "a");
        let stage = Stage::with(HttpOptions {
            sessions_per_owner: 2,
            tokens,
            ..HttpOptions::default()
        })
        .await;
        let (listens, works) = (open(&stage, token).await, open(&stage, token).await);
        let stream = listens.listen(None).await;
        let task = works.task("gated", json!({})).await;
        let refused = initialize(&stage, token).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("retry-after"), Some("1"));
        let error = refused.json().await;
        assert_eq!(error["id"], 1);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("`sessions_per_owner`"), "{message}");
        assert_eq!([ping(&listens).await, ping(&works).await], [200; 2]);

        // The end of the task, and then the end of the stream, make room.
        stage.gate.add_permits(1);
        works.until(&task, "completed").await;
        open(&stage, token).await;
        assert_eq!([ping(&listens).await, ping(&works).await], [200, 404]);
        drop(stream);
        eventually("room for another session", async || {
            initialize(&stage, token).await.status == 200
        })
        .await;
    }
}

#[tokio::test]
async fn a_flood_of_one_caller_locks_out_nobody() {
    let stage = Stage::with(HttpOptions {
        sessions: 8,
        sessions_per_owner: 5,
        tokens: tokens(),
        ..HttpOptions::default()
    })
    .await;
    let bob = open(&stage, Some("b")).await;
    for _ in 0..30 {
        open(&stage, Some("a")).await;
    }
    assert_eq!(ping(&bob).await, 200);
    // All together are at the limit now: the caller with most sessions makes room.
    let more = [
        open(&stage, Some("b")).await,
        open(&stage, Some("b")).await,
        open(&stage, Some("b")).await,
    ];
    for client in more.iter().chain([&bob]) {
        assert_eq!(ping(client).await, 200);
    }
}

#[tokio::test]
async fn when_all_sessions_are_in_use_another_is_refused() {
    let stage = Stage::with(HttpOptions {
        sessions: 2,
        tokens: tokens(),
        ..HttpOptions::default()
    })
    .await;
    let (one, two) = (open(&stage, Some("a")).await, open(&stage, Some("a")).await);
    let _streams = (one.listen(None).await, two.listen(None).await);
    let refused = initialize(&stage, Some("b")).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(one.leave().await.status, 204);
    open(&stage, Some("b")).await;
}

#[tokio::test]
async fn the_limits_hold_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let options = || HttpOptions {
        sessions_per_owner: 3,
        tokens: tokens(),
        ..HttpOptions::default()
    };
    let stage = Stage::on_file(&file, options()).await;
    let works = open(&stage, Some("a")).await;
    let task = works.task("gated", json!({})).await;
    let bob = open(&stage, Some("b")).await;
    pause().await;
    let older = open(&stage, Some("a")).await;
    pause().await;
    let newer = open(&stage, Some("a")).await;
    stage.fall().await;

    let stage = Stage::on_file(&file, options()).await;
    let [works, bob, older, newer] = moved(&stage, [works, bob, older, newer]);
    // The oldest of all has an open task, which only its record can tell.
    let fresh = open(&stage, Some("a")).await;
    assert_eq!(ping(&older).await, 404);
    for client in [&works, &bob, &newer, &fresh] {
        assert_eq!(ping(client).await, 200);
    }
    assert_eq!(works.status(&task).await["result"]["status"], "working");
}

#[tokio::test]
async fn idle_sessions_without_tasks_are_forgotten_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let options = |idle| HttpOptions {
        idle,
        ..HttpOptions::default()
    };
    let stage = Stage::on_file(&file, options(LONG)).await;
    let (idle, works) = (stage.client().await, stage.client().await);
    works.task("gated", json!({})).await;
    stage.fall().await;
    pause().await;

    // As if the server had been down for longer than `idle`.
    let stage = Stage::on_file(&file, options(Duration::from_millis(1))).await;
    let [idle, works] = moved(&stage, [idle, works]);
    eventually("the idle session is forgotten", async || {
        is_gone(&idle).await
    })
    .await;
    assert_eq!(ping(&works).await, 200);
}

#[tokio::test]
async fn a_gateways_long_lived_tasks_do_not_keep_idle_sessions() {
    // The lifetime of tasks has no part in it.
    let policy = Policy {
        ttl_cap: 24 * 3_600_000,
        run_limit: Some(24 * 3_600_000),
        ..Policy::default()
    };
    let options = HttpOptions {
        idle: Duration::from_millis(200),
        ..HttpOptions::default()
    };
    let stage = Stage::with_policy(options, policy).await;
    let idle = stage.client().await;
    let listens = stage.client().await;
    let _stream = listens.listen(None).await;
    eventually("the idle session is forgotten", async || {
        is_gone(&idle).await
    })
    .await;
    assert_eq!(ping(&listens).await, 200);
}

/// Whether a session is gone that was not used for two sweeps. A request uses it.
async fn is_gone(client: &Client) -> bool {
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    ping(client).await == 404
}

async fn open(stage: &Stage, token: Option<&'static str>) -> Client {
    let mut client = Client {
        token,
        ..stage.stranger()
    };
    client.introduce("2025-11-25").await;
    client
}

async fn initialize(stage: &Stage, token: Option<&'static str>) -> Answer {
    let client = Client {
        token,
        ..stage.stranger()
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    });
    client.ask("initialize", params).await
}

async fn ping(client: &Client) -> u16 {
    client.ask("ping", json!({})).await.status
}

/// The same clients at a server that was started again.
fn moved<const N: usize>(stage: &Stage, clients: [Client; N]) -> [Client; N] {
    let address = stage.server.local_addr();
    clients.map(|client| Client { address, ..client })
}

fn tokens() -> Vec<Token> {
    vec![Token::new("ada", "a"), Token::new("bob", "b")]
}

/// The clock of sessions counts milliseconds.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

const LONG: Duration = Duration::from_secs(3_600);
