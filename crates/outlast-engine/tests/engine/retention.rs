//! Ended tasks that are deleted before their TTL ends.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{Retention, RetentionLimits};
use outlast_engine::{Engine, MemoryStore, Scope, Store, TaskId};
use outlast_testkit::SimClock;
use outlast_wire::Timestamp;

use crate::harness::{Harness, advance_clock, call, owner};

/// Limits for tasks that ended with a result.
fn limits_for_results(limits: RetentionLimits) -> Retention {
    Retention::default().with_completed(limits)
}

/// Ends `count` tasks with a result, one second apart.
async fn end_tasks(harness: &Harness, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let id = harness.create("echo").await.id;
        harness.wait(id).await;
        ids.push(id);
        harness.clock.advance(Duration::from_secs(1));
    }
    ids
}

async fn pruned(harness: &Harness, limits: RetentionLimits) -> Vec<TaskId> {
    let found = harness
        .engine
        .prune(&limits_for_results(limits), 100, false)
        .await;
    found.unwrap().tasks.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test]
async fn the_newest_tasks_within_every_limit_are_kept() {
    let harness = Harness::new().await;
    let ids = end_tasks(&harness, 5).await;
    let failed = harness.create("fail").await.id;
    harness.wait(failed).await;
    let open = harness.create("ignores_cancel").await.id;
    let none = RetentionLimits::default();
    assert_eq!(pruned(&harness, none).await, []);
    // Tasks ended 5, 4, 3, 2 and 1 seconds ago.
    let old = none.with_age(Duration::from_millis(4_500));
    assert_eq!(pruned(&harness, old).await, [ids[0]]);
    assert_eq!(pruned(&harness, none.with_count(3)).await, [ids[1]]);
    let body = harness.store.body(&Scope::AnyTask, ids[4]).await.unwrap();
    let size = body.expect("a result").as_str().len() as u64;
    assert_eq!(pruned(&harness, none.with_bytes(2 * size)).await, [ids[2]]);
    assert_eq!(
        pruned(&harness, none.with_bytes(size - 1)).await,
        [ids[4], ids[3]]
    );
    // Other outcomes and open tasks are unchanged.
    for id in [failed, open] {
        assert!(harness.engine.get(&Scope::AnyTask, id).await.is_ok());
    }
}

#[tokio::test]
async fn a_dry_run_and_a_limit_leave_tasks() {
    let harness = Harness::new().await;
    let ids = end_tasks(&harness, 3).await;
    let limits = RetentionLimits::default().with_count(0);
    let shown = harness
        .engine
        .prune(&limits_for_results(limits), 100, true)
        .await
        .unwrap();
    assert_eq!((shown.tasks.len(), shown.more), (3, false));
    let first = harness
        .engine
        .prune(&limits_for_results(limits), 2, false)
        .await
        .unwrap();
    assert_eq!((first.tasks.len(), first.more), (2, true));
    assert!(harness.engine.get(&Scope::AnyTask, ids[0]).await.is_ok());
    assert_eq!(pruned(&harness, limits).await, [ids[0]]);
}

#[tokio::test(start_paused = true)]
async fn a_configured_retention_is_enforced_while_the_engine_runs() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let harness = Harness::on(store.clone(), Default::default()).await;
    let limits = RetentionLimits::default().with_count(1);
    let clock = Arc::new(SimClock::new(Timestamp(1_700_000_000_000)));
    let builder = Engine::builder(store)
        .clock(clock)
        .retention(limits_for_results(limits));
    let (engine, _) = builder.open().await.unwrap();
    for _ in 0..4 {
        let task = harness.engine.create(call("echo")).await.unwrap().task().id;
        harness.wait(task).await;
    }
    assert_eq!(engine.usage(&owner()).await.unwrap().retained, 4);
    // The limits are checked once a minute.
    advance_clock(61_000).await;
    assert_eq!(engine.usage(&owner()).await.unwrap().retained, 1);
}
