//! Many callers share a commit, and an intermediate version of a task is not written.

use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_store::SqliteOptions;
use outlast_store::sqlite::FailPoint;

use crate::harness::{Gate, PlannedFailures, StoreFolder};

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_share_few_commits() {
    let folder = StoreFolder::new();
    let probe = Arc::new(PlannedFailures::default());
    let store = folder.open_with(probe.options()).await;
    let callers = (0..256).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { fixtures::stored(&store, fixtures::task(n)).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert!(probe.commits() <= 128, "{} commits", probe.commits());
}

/// One half is written while the callers of the other half continue.
#[tokio::test]
async fn a_long_queue_is_committed_in_halves() {
    let folder = StoreFolder::new();
    let (gate, open) = Gate::at(FailPoint::AfterCommit);
    let options = SqliteOptions::default().with_fail_points(Arc::new(gate));
    let store = folder.open_with(options).await;
    let inserted = |n| store.insert(fixtures::insertion(fixtures::task(n)));
    let first = inserted(0);
    open.reached();
    let others: Vec<_> = (1..=1_000).map(inserted).collect();
    let mut seen = Vec::new();
    for _ in 0..4 {
        open.release();
        open.reached();
        // Earlier commits are visible by now.
        seen.push(
            fixtures::listed(&store, &fixtures::ada(), 2_000)
                .await
                .len(),
        );
    }
    assert_eq!(seen, [1, 501, 751, 879]);
    drop(open);
    first.await.unwrap();
    for other in others {
        other.await.unwrap();
    }
}

#[tokio::test]
async fn a_change_of_a_queued_insertion_is_committed_with_it() {
    let folder = StoreFolder::new();
    let probe = Arc::new(PlannedFailures::default());
    let store = folder.open_with(probe.options()).await;
    let other = fixtures::stored(&store, fixtures::task(0)).await;
    let before = probe.commits();

    // The first operation keeps the writer busy, and the others queue.
    let task = fixtures::task(1);
    let noted = fixtures::change(&task, fixtures::status(&task, "at work"), fixtures::CREATED);
    let ended = fixtures::change(
        &noted.next,
        fixtures::end(&noted.next, fixtures::result("7")),
        fixtures::CREATED,
    );
    let first = fixtures::change(&other, fixtures::status(&other, "busy"), fixtures::CREATED);
    let (first, inserted, noted, ended) = tokio::join!(
        store.replace(first),
        store.insert(fixtures::insertion(task.clone())),
        store.replace(noted),
        store.replace(ended),
    );
    assert_eq!(first.unwrap().revision.0, 2);
    inserted.unwrap();
    assert_eq!(noted.unwrap().revision.0, 2);
    assert_eq!(ended.unwrap().revision.0, 3);
    assert!(probe.commits() - before <= 4);
    assert_eq!(folder.query::<u32>("SELECT max(revision) FROM tasks"), 3);
    assert_eq!(
        fixtures::body(&store, task.id).await,
        Some(fixtures::raw("7"))
    );
}

#[tokio::test]
async fn large_removals_are_split_into_batches() {
    let folder = StoreFolder::new();
    let probe = Arc::new(PlannedFailures::default());
    let store = folder.open_with(probe.options()).await;
    let inserts = (0..1_000).map(|n| store.insert(fixtures::insertion(fixtures::task(n))));
    let mut all = Vec::new();
    for insert in inserts.collect::<Vec<_>>() {
        insert.await.unwrap();
    }
    for n in 0..1_000 {
        all.push((fixtures::id(n), outlast_engine::Revision(1)));
    }
    let before = probe.commits();
    let gone = store.remove(fixtures::NODE_A, all).await.unwrap();
    assert_eq!(gone.len(), 1_000);
    assert_eq!(probe.commits() - before, 4, "256 rows to a commit");
    assert_eq!(folder.query::<u32>("SELECT count(*) FROM tasks"), 0);
}
