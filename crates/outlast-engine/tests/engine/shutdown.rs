//! The shutdown of an engine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::engine::{EngineError, ShutdownReport};
use outlast_engine::{Ending, Outcome, Scope};

use crate::harness::{Harness, ada, advance_clock, call};

#[tokio::test(start_paused = true)]
async fn calls_that_finish_in_time_complete() {
    let harness = Harness::new().await;
    let id = harness.create("second").await.id;
    let store = harness.store.clone();
    let done = harness
        .engine
        .shutdown(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(done, ShutdownReport { interrupted: 0 });
    let found = store.get(&Scope::AnyTask, id).await.unwrap().unwrap();
    assert_eq!(found.ending(), Some(Ending::Result));
}

#[tokio::test(start_paused = true)]
async fn no_new_work_is_accepted_while_the_engine_drains() {
    let harness = Harness::new().await;
    let _ = harness.create("second").await;
    let engine = harness.engine.clone();
    let closing = tokio::spawn(harness.engine.clone().shutdown(Duration::from_secs(10)));
    advance_clock(10).await;
    assert_eq!(
        engine.create(call("echo")).await.map(drop),
        Err(EngineError::Closing)
    );
    assert!(engine.start(call("echo")).is_err());
    closing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_that_cannot_finish_are_left_for_the_next_start() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    let store = harness.store.clone();
    let done = harness
        .engine
        .shutdown(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(done, ShutdownReport { interrupted: 1 });
    assert_eq!(
        store
            .get(&Scope::AnyTask, id)
            .await
            .unwrap()
            .unwrap()
            .ending(),
        None
    );
    advance_clock(7_200_000).await;
    assert_eq!(harness.tools.finished.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_answered_at_shutdown() {
    let harness = Harness::new().await;
    let id = harness.create("ignores_cancel").await.id;
    let engine = harness.engine.clone();
    let waiter = tokio::spawn(async move { engine.wait(&ada(), id).await });
    advance_clock(10).await;
    harness
        .engine
        .shutdown(Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(waiter.await.unwrap(), Err(EngineError::Closing));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_during_a_shutdown_is_refused_or_finishes() {
    let mut refused = 0;
    for _ in 0..300 {
        let harness = Harness::new().await;
        let begin = std::sync::Arc::new(tokio::sync::Barrier::new(2));
        let starting = tokio::spawn({
            let (engine, begin) = (harness.engine.clone(), begin.clone());
            async move {
                begin.wait().await;
                match engine.start(call("echo")) {
                    Ok(mut call) => Some(call.outcome().await),
                    Err(error) => {
                        assert_eq!(error, EngineError::Closing);
                        None
                    }
                }
            }
        });
        begin.wait().await;
        let engine = harness.engine.clone();
        engine.shutdown(Duration::from_secs(10)).await.unwrap();
        match starting.await.unwrap() {
            Some(outcome) => assert!(matches!(outcome, Outcome::Result(_)), "{outcome:?}"),
            None => refused += 1,
        }
    }
    println!("{refused} of 300 calls were refused");
}
