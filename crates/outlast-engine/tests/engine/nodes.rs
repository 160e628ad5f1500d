//! Two engines on one store: each can perform every operation, and work survives the loss of one.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::engine::Event;
use outlast_engine::{Clock, Ending, ErrorCode};
use outlast_testkit::within;

use crate::harness::{Harness, accept, ada, advance_clock, open_keys, raw, repeatable};

#[tokio::test(start_paused = true)]
async fn a_waiter_on_one_node_wakes_when_another_finishes() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let id = one.create("second").await.id;
    let before = two.clock.now();
    assert_eq!(two.wait(id).await.body, Some(raw("1")));
    assert_eq!(two.clock.now().since(before), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_node_that_runs_the_call() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let now = one.create("ignores_cancel").await.id;
    let soon = one.create("obedient").await.id;
    advance_clock(10).await;
    let _ = two.engine.cancel_now(&ada(), now).await.unwrap();
    two.engine.request_cancel(&ada(), soon).await.unwrap();
    assert_eq!(two.wait(soon).await.summary.ending, Ending::Cancelled);
    advance_clock(10).await;
    assert_eq!(one.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_input_response_reaches_the_call_on_another_node() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let id = one.create("ask").await.id;
    advance_clock(10).await;
    let keys = open_keys(&two.engine.load(&ada(), id).await.unwrap());
    two.engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    assert_eq!(one.wait(id).await.body, Some(raw(r#"{"action":"accept"}"#)));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_events_of_another_node() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let id = one.create("talk").await.id;
    let mut watch = two.engine.watch(&ada(), id).await.unwrap();
    let mut last = None;
    let mut steps = 0;
    while let Some(event) = within("an event", watch.next()).await {
        if let Event::Stored(task) = event {
            last = Some(task);
            steps += 1;
        }
    }
    assert_eq!(last.unwrap().state.ending(), Some(Ending::Result));
    assert!(steps >= 4, "{steps}");
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_lost_node_is_recovered_by_another() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let lost = one.create("ignores_cancel").await.id;
    let again = one
        .engine
        .create(repeatable("second"))
        .await
        .unwrap()
        .task()
        .id;
    let mine = two.create("second").await.id;
    advance_clock(10).await;
    one.engine.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(
        two.wait(lost).await.summary.ending,
        Ending::Error(ErrorCode(-32603))
    );
    assert_eq!(two.wait(again).await.body, Some(raw("1")));
    assert_eq!(two.wait(mine).await.body, Some(raw("1")));
    assert_eq!(two.tools.started.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn of_two_remaining_nodes_one_takes_the_work_over() {
    let one = Harness::new().await;
    let two = one.second_engine().await;
    let three = one.second_engine().await;
    for _ in 0..20 {
        let _ = one.engine.create(repeatable("second")).await.unwrap();
    }
    advance_clock(10).await;
    one.engine.shutdown(Duration::ZERO).await.unwrap();
    advance_clock(2_000).await;
    let started =
        two.tools.started.load(Ordering::SeqCst) + three.tools.started.load(Ordering::SeqCst);
    assert_eq!(started, 20);
    let usage = two.engine.usage(&crate::harness::owner()).await.unwrap();
    assert_eq!((usage.open, usage.retained), (0, 20));
}
