//! The two ways to cancel, and their races with the end.

use std::sync::atomic::Ordering;

use outlast_engine::engine::EngineError;
use outlast_engine::transition::Refused;
use outlast_engine::{Clock, Ending};

use crate::harness::{Harness, ada, advance_clock};

#[tokio::test(start_paused = true)]
async fn cancelling_now_ends_the_task_and_stops_the_work() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    advance_clock(10).await;
    let task = harness.engine.cancel_now(&ada(), id).await.unwrap();
    // V1-CANCEL-3: cancelled before the response.
    assert_eq!(task.state.ending(), Some(Ending::Cancelled));
    advance_clock(7_200_000).await;
    assert_eq!(harness.tools.finished.load(Ordering::SeqCst), 0);
    assert_eq!(harness.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_cancel_is_refused() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    let _ = harness.engine.cancel_now(&ada(), id).await.unwrap();
    // V1-CANCEL-1.
    let again = harness.engine.cancel_now(&ada(), id).await.map(drop);
    let ended = Refused::AlreadyEnded(Ending::Cancelled);
    assert_eq!(again, Err(EngineError::Refused(ended)));
}

#[tokio::test(start_paused = true)]
async fn waiters_are_answered_when_the_task_is_cancelled() {
    let harness = Harness::new().await;
    let id = harness.create("ask").await.id;
    let engine = harness.engine.clone();
    let waiter = tokio::spawn(async move { engine.wait(&ada(), id).await });
    advance_clock(10).await;
    let _ = harness.engine.cancel_now(&ada(), id).await.unwrap();
    let settled = waiter.await.unwrap().unwrap();
    assert_eq!(
        (settled.summary.ending, settled.body),
        (Ending::Cancelled, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cooperative_runner_stops_when_cancelled() {
    let harness = Harness::new().await;
    let id = harness.create("obedient").await.id;
    advance_clock(10).await;
    harness.engine.request_cancel(&ada(), id).await.unwrap();
    let before = harness.clock.now();
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Cancelled);
    assert!(harness.clock.now().since(before) < 100);
    // V2-CANCEL-7: also for a task that has ended.
    harness.engine.request_cancel(&ada(), id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_uncooperative_runner_is_aborted_at_the_deadline() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    advance_clock(10).await;
    harness.engine.request_cancel(&ada(), id).await.unwrap();
    let before = harness.clock.now();
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Cancelled);
    let patience = harness.engine.policy().cancel_timeout.as_millis() as u64;
    assert!((patience..patience + 100).contains(&harness.clock.now().since(before)));
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_after_a_cancel_request_keeps_its_outcome() {
    let harness = Harness::new().await;
    let id = harness.create("second").await.id;
    harness.engine.request_cancel(&ada(), id).await.unwrap();
    // V2-CANCEL-4.
    assert_eq!(harness.wait(id).await.summary.ending, Ending::Result);
}

#[tokio::test]
async fn of_cancel_and_completion_exactly_one_wins() {
    let harness = Harness::new().await;
    for _ in 0..300 {
        let id = harness.create("echo").await.id;
        let engine = harness.engine.clone();
        let cancel = tokio::spawn(async move { engine.cancel_now(&ada(), id).await });
        let settled = harness.wait(id).await;
        let cancelled = cancel.await.unwrap();
        match settled.summary.ending {
            Ending::Cancelled => assert!(cancelled.is_ok()),
            Ending::Result => {
                let refused = cancelled.map(drop);
                let ended = Refused::AlreadyEnded(Ending::Result);
                assert_eq!(refused, Err(EngineError::Refused(ended)));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(harness.wait(id).await, settled);
    }
}
