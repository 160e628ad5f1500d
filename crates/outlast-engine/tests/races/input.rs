//! Races between input requests, responses, cancellation and withdrawal.

use outlast_engine::store::Snapshot;
use outlast_engine::task::State;
use outlast_engine::{Ending, Engine, TaskId};
use shuttle::future::{JoinHandle, spawn, yield_now};

use crate::harness::{Harness, ada, answer_first, call, create, explore, is_whole, waiter};
use crate::tools::raw;

fn spawn_responder(engine: &Engine, id: TaskId) -> JoinHandle<()> {
    let engine = engine.clone();
    spawn(async move { answer_first(&engine, id).await })
}

#[test]
fn an_input_response_reaches_its_work() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask")).await;
        let (answerer, waiter) = (spawn_responder(&engine, id), waiter(&engine, id));
        answerer.await.unwrap();
        assert_eq!(waiter.await.unwrap().unwrap().body, Some(raw("2")));
        harness.finish([engine]).await;
    });
}

#[test]
fn an_input_request_is_answered_or_its_task_cancelled() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask")).await;
        let (answerer, waiter) = (spawn_responder(&engine, id), waiter(&engine, id));
        let cancelled = engine.cancel_now(&ada(), id).await;
        answerer.await.unwrap();
        let settled = waiter.await.unwrap().unwrap();
        assert!(is_whole(&settled), "{settled:?}");
        let ending = settled.summary.ending;
        assert_eq!(cancelled.is_ok(), ending == Ending::Cancelled, "{ending:?}");
        harness.finish([engine]).await;
    });
}

#[test]
fn a_withdrawn_input_request_does_not_stay_open() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask-briefly")).await;
        let answerer = spawn_responder(&engine, id);
        until_no_input_is_awaited(&harness, id).await;
        engine.request_cancel(&ada(), id).await.unwrap();
        answerer.await.unwrap();
        waiter(&engine, id).await.unwrap().unwrap();
        harness.finish([engine]).await;
    });
}

#[test]
fn an_unanswered_input_request_is_withdrawn() {
    explore(|harness| async move {
        let engine = harness.engine().await;
        let id = create(&engine, call("ask-briefly")).await;
        until_no_input_is_awaited(&harness, id).await;
        engine.request_cancel(&ada(), id).await.unwrap();
        harness.finish([engine]).await;
    });
}

/// Waits until the work has withdrawn its input request and the task no longer awaits input.
pub(crate) async fn until_no_input_is_awaited(harness: &Harness, id: TaskId) {
    while *harness.tools.withdrawn.lock().unwrap() == 0 {
        yield_now().await;
    }
    // Operations that were in progress at the withdrawal may complete.
    for _ in 0..20 {
        yield_now().await;
    }
    loop {
        let Some(Snapshot::Open(task)) = harness.snapshot(id).await else {
            panic!("it runs until it is asked to stop");
        };
        if task.state == State::Working {
            return;
        }
        yield_now().await;
    }
}
