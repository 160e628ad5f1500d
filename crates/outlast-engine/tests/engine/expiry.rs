//! The expiry of tasks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::engine::EngineError;
use outlast_engine::task::TtlPolicy;
use outlast_engine::{Ending, Policy};

use crate::harness::{Harness, ada, advance_clock, call, owner};

#[tokio::test(start_paused = true)]
async fn a_task_is_stored_exactly_until_it_expires() {
    let harness = Harness::new().await;
    let mut short = call("echo");
    short.ttl = Some(Duration::from_millis(1_000));
    let id = harness.engine.create(short).await.unwrap().task().id;
    harness.wait(id).await;
    advance_clock(990).await;
    assert!(harness.engine.get(&ada(), id).await.is_ok());
    advance_clock(10).await;
    assert!(matches!(
        harness.engine.get(&ada(), id).await,
        Err(EngineError::Expired | EngineError::NotFound)
    ));
    advance_clock(10).await;
    assert_eq!(harness.engine.usage(&owner()).await.unwrap().retained, 0);
}

#[tokio::test(start_paused = true)]
async fn expiry_answers_waiters_and_stops_the_work() {
    let harness = Harness::with(strict()).await;
    let mut short = call("ignores_cancel");
    short.ttl = Some(Duration::from_millis(1_000));
    let id = harness.engine.create(short).await.unwrap().task().id;
    // A1-23.
    let waited = harness.engine.wait(&ada(), id).await;
    assert!(
        matches!(waited, Err(EngineError::Expired | EngineError::NotFound)),
        "{waited:?}"
    );
    advance_clock(7_200_000).await;
    assert_eq!(harness.tools.finished.load(Ordering::SeqCst), 0);
    assert_eq!(harness.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_requested_ttl_is_capped_and_reported() {
    let harness = Harness::new().await;
    let mut long = call("echo");
    long.ttl = Some(Duration::from_millis(u64::MAX));
    let task = harness.engine.create(long).await.unwrap().task().clone();
    let policy = harness.engine.policy();
    assert_eq!(u128::from(task.lifetime.ttl_ms), policy.max_ttl.as_millis());
    let granted = harness.create("echo").await.lifetime.ttl_ms;
    assert_eq!(u128::from(granted), policy.default_ttl.as_millis());
}

#[tokio::test(start_paused = true)]
async fn kept_work_outlasts_its_ttl() {
    // The default policy.
    let harness = Harness::new().await;
    let mut short = call("second");
    short.ttl = Some(Duration::from_millis(100));
    let id = harness.engine.create(short).await.unwrap().task().id;
    advance_clock(550).await;
    assert!(
        harness
            .engine
            .load(&ada(), id)
            .await
            .unwrap()
            .lifetime
            .ttl_ms
            > 500
    );
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Result);
    advance_clock(90).await;
    assert!(harness.engine.get(&ada(), id).await.is_ok());
    advance_clock(20).await;
    assert!(harness.engine.get(&ada(), id).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_is_stopped_at_its_run_limit() {
    let policy = Policy::default().with_run_limit(Duration::from_millis(5_000));
    let harness = Harness::with(policy).await;
    let id = harness.create("ignores_cancel").await.id;
    let settled = harness.wait(id).await;
    assert!(matches!(settled.summary.ending, Ending::Error(_)));
    assert!(
        settled
            .summary
            .message
            .as_deref()
            .unwrap()
            .contains("run limit")
    );
}

#[tokio::test(start_paused = true)]
async fn an_extended_task_expires_later() {
    let harness = Harness::with(strict()).await;
    let mut short = call("echo");
    short.ttl = Some(Duration::from_millis(1_000));
    let id = harness.engine.create(short).await.unwrap().task().id;
    let mut slow = call("ignores_cancel");
    slow.ttl = Some(Duration::from_millis(1_000));
    let open = harness.engine.create(slow).await.unwrap().task().id;
    harness.wait(id).await;
    let _ = harness.engine.extend(&ada(), open, 3_000).await.unwrap();
    advance_clock(2_000).await;
    assert!(harness.engine.get(&ada(), id).await.is_err());
    assert!(harness.engine.get(&ada(), open).await.is_ok());
    advance_clock(1_100).await;
    assert!(harness.engine.get(&ada(), open).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_deadlines_are_handled() {
    let harness = Harness::with(
        strict().with_quota(
            outlast_engine::Quota::default()
                .with_owner_open(2_000)
                .with_owner_retained(2_000)
                .with_open(2_000)
                .with_retained(2_000),
        ),
    )
    .await;
    for n in 0..1_000 {
        let mut short = call("ignores_cancel");
        short.ttl = Some(Duration::from_millis(1_000 + n));
        let _ = harness.engine.create(short).await.unwrap();
    }
    advance_clock(1_500).await;
    let left = harness.engine.usage(&owner()).await.unwrap().retained;
    assert!((490..=510).contains(&left), "{left}");
    advance_clock(600).await;
    assert_eq!(
        harness.engine.usage(&owner()).await.unwrap(),
        outlast_engine::store::Usage::default()
    );
}

/// A policy with which the TTL ends the work.
fn strict() -> Policy {
    Policy::default().with_ttl_policy(TtlPolicy::Strict)
}

#[tokio::test(start_paused = true)]
async fn only_an_ended_task_is_deleted_and_completely() {
    let harness = Harness::new().await;
    let running = harness.create("ignores_cancel").await.id;
    assert!(!harness.engine.delete_ended(&ada(), running).await.unwrap());
    assert!(harness.engine.get(&ada(), running).await.is_ok());
    let ended = harness.create("echo").await.id;
    harness.wait(ended).await;
    assert!(harness.engine.delete_ended(&ada(), ended).await.unwrap());
    assert!(matches!(
        harness.engine.get(&ada(), ended).await,
        Err(EngineError::NotFound)
    ));
    assert_eq!(harness.engine.usage(&owner()).await.unwrap().retained, 1);
    assert!(matches!(
        harness.engine.delete_ended(&ada(), ended).await,
        Err(EngineError::NotFound)
    ));
}
