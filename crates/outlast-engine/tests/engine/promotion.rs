//! Calls that become tasks only if necessary.

use std::sync::atomic::Ordering;

use outlast_engine::engine::{EngineError, Event, Promotion};
use outlast_engine::store::Usage;
use outlast_engine::{Outcome, Policy, Quota};

use crate::harness::{Harness, accept, ada, advance_clock, call, open_keys, owner, raw};

#[tokio::test(start_paused = true)]
async fn a_plain_call_does_not_use_the_store() {
    let harness = Harness::new().await;
    let mut running = harness.engine.start(call("second")).unwrap();
    assert_eq!(running.outcome().await, Outcome::Result(raw("1")));
    assert_eq!(harness.engine.usage(&owner()).await, Ok(Usage::default()));
    assert_eq!(harness.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_promoted_call_continues_with_the_same_task_id() {
    let harness = Harness::new().await;
    let running = harness.engine.start(call("second")).unwrap();
    let id = running.id();
    advance_clock(700).await;
    let Promotion::Stored(task) = running.promote().await.map_err(|(_, error)| error).unwrap()
    else {
        panic!("it still runs");
    };
    assert_eq!(task.id, id);
    assert_eq!(harness.wait(id).await.body, Some(raw("1")));
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_is_not_promoted() {
    let harness = Harness::new().await;
    let running = harness.engine.start(call("echo")).unwrap();
    advance_clock(10).await;
    let promotion = running.promote().await.map_err(|(_, error)| error).unwrap();
    assert!(matches!(promotion, Promotion::Finished(Outcome::Result(_))));
    assert_eq!(harness.engine.usage(&owner()).await, Ok(Usage::default()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_continues() {
    let quota = Quota::default()
        .with_owner_open(1)
        .with_owner_retained(10)
        .with_open(10)
        .with_retained(10);
    let harness = Harness::with(Policy::default().with_quota(quota)).await;
    let _ = harness.create("ignores_cancel").await;
    let running = harness.engine.start(call("second")).unwrap();
    let Err((mut running, error)) = running.promote().await else {
        panic!("the quota is exhausted")
    };
    assert!(matches!(error, EngineError::Store(_)));
    assert_eq!(running.outcome().await, Outcome::Result(raw("1")));
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_can_be_promoted_while_it_awaits_input() {
    let harness = Harness::new().await;
    let mut running = harness.engine.start(call("ask")).unwrap();
    let Some(Event::Plain(state)) = running.event().await else {
        panic!("it asks")
    };
    let keys = open_keys(&state);
    assert_eq!(keys.len(), 1);
    let promoted = running.promote().await.map_err(|(_, error)| error).unwrap();
    let Promotion::Stored(task) = promoted else {
        panic!("it waits")
    };
    assert_eq!(open_keys(&task), keys);
    harness
        .engine
        .provide_input(&ada(), task.id, accept(&keys[0]))
        .await
        .unwrap();
    assert_eq!(
        harness.wait(task.id).await.body,
        Some(raw(r#"{"action":"accept"}"#))
    );
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_can_get_input() {
    let harness = Harness::new().await;
    let mut running = harness.engine.start(call("ask")).unwrap();
    let Some(Event::Plain(state)) = running.event().await else {
        panic!("it asks")
    };
    running
        .provide_input(accept(&open_keys(&state)[0]))
        .await
        .unwrap();
    assert_eq!(
        running.outcome().await,
        Outcome::Result(raw(r#"{"action":"accept"}"#))
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_plain_call_stops_its_work() {
    let harness = Harness::new().await;
    let running = harness.engine.start(call("second")).unwrap();
    advance_clock(10).await;
    drop(running);
    advance_clock(5_000).await;
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 1);
    assert_eq!(harness.tools.finished.load(Ordering::SeqCst), 0);
    assert_eq!(harness.engine.running(), 0);
}

#[tokio::test]
async fn a_call_ending_while_stored_gets_one_response() {
    let harness = Harness::new().await;
    for _ in 0..300 {
        let running = harness.engine.start(call("echo")).unwrap();
        let id = running.id();
        match running.promote().await.map_err(|(_, error)| error).unwrap() {
            Promotion::Stored(_) => {
                assert_eq!(harness.wait(id).await.body, Some(raw(r#"{"content":[]}"#)));
            }
            Promotion::Finished(outcome) => {
                assert_eq!(outcome, Outcome::Result(raw(r#"{"content":[]}"#)));
                assert_eq!(
                    harness.engine.get(&ada(), id).await.map(drop),
                    Err(EngineError::NotFound)
                );
            }
        }
    }
    assert_eq!(harness.tools.started.load(Ordering::SeqCst), 300);
}
