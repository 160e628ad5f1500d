//! A restart after an engine was lost while tasks were running.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::task::State;
use outlast_engine::{Attempt, Ending, ErrorCode};

use crate::harness::{Harness, accept, ada, advance_clock, open_keys, raw, repeatable};

/// Drops the engine without a shutdown, as in a crash, and opens another one on the same store.
async fn crash(harness: Harness) -> Harness {
    let (store, policy) = (harness.store.clone(), harness.engine.policy().clone());
    harness.engine.shutdown(Duration::ZERO).await.unwrap();
    Harness::on(store, policy).await
}

#[tokio::test(start_paused = true)]
async fn work_that_may_not_run_again_ends_as_unknown() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    advance_clock(10).await;
    let harness = crash(harness).await;
    // P4: recovered before the engine is open.
    let task = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!(task.state.ending(), Some(Ending::Error(ErrorCode(-32603))));
    assert!(
        task.message
            .as_deref()
            .unwrap()
            .contains("outcome is unknown")
    );
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn repeatable_work_runs_again_as_a_new_attempt() {
    let harness = Harness::new().await;
    let id = harness
        .engine
        .create(repeatable("second"))
        .await
        .unwrap()
        .task()
        .id;
    advance_clock(10).await;
    let harness = crash(harness).await;
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
    assert_eq!(
        harness.engine.load(&ada(), id).await.unwrap().attempt,
        Attempt(2)
    );
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_attempts_is_bounded() {
    let mut harness = Harness::new().await;
    let id = harness
        .engine
        .create(repeatable("ignores_cancel"))
        .await
        .unwrap()
        .task()
        .id;
    let allowed = harness.engine.policy().max_attempts;
    for attempt in 2..=allowed {
        harness = crash(harness).await;
        assert_eq!(
            harness.engine.load(&ada(), id).await.unwrap().attempt,
            Attempt(attempt)
        );
    }
    harness = crash(harness).await;
    assert_eq!(
        harness.wait(id).await.summary.ending,
        Ending::Error(ErrorCode(-32603))
    );
}

#[tokio::test(start_paused = true)]
async fn a_rerun_withdraws_old_input_requests_and_uses_fresh_keys() {
    let harness = Harness::new().await;
    let id = harness
        .engine
        .create(repeatable("ask"))
        .await
        .unwrap()
        .task()
        .id;
    advance_clock(10).await;
    let old = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    let harness = crash(harness).await;
    advance_clock(10).await;
    let new = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    assert_eq!(new.len(), 1);
    assert_ne!(old, new);
    harness
        .engine
        .provide_input(&ada(), id, accept(&old[0]))
        .await
        .unwrap();
    assert!(matches!(
        harness.engine.load(&ada(), id).await.unwrap().state,
        State::AwaitingInput(_)
    ));
    harness
        .engine
        .provide_input(&ada(), id, accept(&new[0]))
        .await
        .unwrap();
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Result);
}

#[tokio::test(start_paused = true)]
async fn saved_work_is_reattached() {
    let harness = Harness::new().await;
    let id = harness.create("attach").await.id;
    advance_clock(10).await;
    let harness = crash(harness).await;
    assert_eq!(harness.wait(id).await.body, Some(raw("\"upstream-7\"")));
    assert_eq!(harness.tools.reattached.load(Ordering::SeqCst), 1);
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn open_input_requests_survive_a_reattachment() {
    let harness = Harness::new().await;
    let id = harness.create("attach-and-ask").await.id;
    advance_clock(10).await;
    let harness = crash(harness).await;
    advance_clock(10).await;
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].as_str(), "theirs");
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    assert_eq!(harness.wait(id).await.body, Some(raw("\"upstream-8\"")));
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_requested_cancellation_never_reruns() {
    let harness = Harness::new().await;
    let id = harness
        .engine
        .create(repeatable("ignores_cancel"))
        .await
        .unwrap()
        .task()
        .id;
    advance_clock(10).await;
    harness.engine.request_cancel(&ada(), id).await.unwrap();
    let harness = crash(harness).await;
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Cancelled);
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn finished_results_are_there_after_a_crash() {
    let harness = Harness::new().await;
    let id = harness.create("echo").await.id;
    let before = harness.wait(id).await;
    let harness = crash(harness).await;
    assert_eq!(harness.wait(id).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_interrupted_tasks_are_recovered_before_the_engine_opens() {
    let quota = outlast_engine::Quota::default()
        .with_owner_open(1_000)
        .with_owner_retained(5_000)
        .with_open(5_000)
        .with_retained(5_000);
    let policy = outlast_engine::Policy::default().with_quota(quota);
    let harness = Harness::with(policy).await;
    for _ in 0..1_000 {
        let _ = harness.create("ignores_cancel").await;
    }
    let harness = crash(harness).await;
    assert_eq!(
        harness
            .engine
            .usage(&crate::harness::owner())
            .await
            .unwrap()
            .open,
        0
    );
}
