//! Tasks without an executor: other code reports and ends them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::engine::{EngineError, Work};
use outlast_engine::{Attempt, Ending, InputKey, NodeId, Outcome};

use crate::harness::{Harness, accept, ada, advance_clock, call, form, open_keys, raw};

async fn detached(harness: &Harness) -> outlast_engine::TaskId {
    let mut call = call("instant");
    call.work = Work::Detached;
    harness.engine.create(call).await.unwrap().task().id
}

#[tokio::test(start_paused = true)]
async fn recovery_never_claims_a_detached_task() {
    let harness = Harness::new().await;
    let id = detached(&harness).await;
    assert_eq!(harness.engine.running(), 0, "a shutdown does not wait");
    let (store, policy) = (harness.store.clone(), harness.engine.policy().clone());
    let report = harness.engine.shutdown(Duration::from_secs(60)).await;
    assert_eq!(report.unwrap().interrupted, 0);
    let harness = Harness::on(store, policy).await;
    let task = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!(task.executor, NodeId::DETACHED);
    assert!(task.state.ending().is_none());
    let end = harness.engine.detached(id, task.attempt);
    let _ = end.end(Outcome::Result(raw("1"))).await.unwrap();
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
}

#[tokio::test(start_paused = true)]
async fn a_detached_task_ends_exactly_once() {
    let harness = Harness::new().await;
    let id = detached(&harness).await;
    let task = harness.engine.detached(id, Attempt(1));
    let _ = task.end(Outcome::Result(raw("1"))).await.unwrap();
    let again = task.end(Outcome::Result(raw("2"))).await;
    assert!(matches!(again, Err(EngineError::Refused(_))), "{again:?}");
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
}

#[tokio::test(start_paused = true)]
async fn a_detached_task_requests_input_and_reads_the_response() {
    let harness = Harness::new().await;
    let id = detached(&harness).await;
    let task = harness.engine.detached(id, Attempt(1));
    let key = InputKey::new("who");
    task.request_input(key.clone(), form()).await.unwrap();
    let stored = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!(open_keys(&stored), std::slice::from_ref(&key));
    let response = harness.engine.provide_input(&ada(), id, accept(&key)).await;
    response.unwrap();
    let stored = harness.engine.load(&ada(), id).await.unwrap();
    assert!(stored.input.responses.contains_key(&key));
    task.confirm_input(key.clone()).await.unwrap();
    let stored = harness.engine.load(&ada(), id).await.unwrap();
    assert!(!stored.input.responses.contains_key(&key));
}

#[tokio::test(start_paused = true)]
async fn missing_heartbeats_end_a_detached_task() {
    let harness = Harness::new().await;
    let id = detached(&harness).await;
    let task = harness.engine.detached(id, Attempt(1));
    task.heartbeat(Duration::from_secs(1)).await.unwrap();
    advance_clock(900).await;
    task.heartbeat(Duration::from_secs(1)).await.unwrap();
    advance_clock(900).await;
    let stored = harness.engine.load(&ada(), id).await.unwrap();
    assert!(stored.state.ending().is_none());
    advance_clock(400).await;
    let ended = harness.wait(id).await;
    assert!(matches!(ended.summary.ending, Ending::Error(_)));
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_the_former_runner_is_dropped() {
    let harness = Harness::new().await;
    let id = harness.create("detach").await.id;
    advance_clock(10).await;
    assert_eq!(harness.tools.finished.load(Ordering::SeqCst), 1);
    let task = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!(task.executor, NodeId::DETACHED);
    assert!(task.state.ending().is_none());
    assert_eq!(task.attempt, Attempt(2));
    let end = harness.engine.detached(id, task.attempt);
    let _ = end.end(Outcome::Result(raw("1"))).await.unwrap();
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
}
