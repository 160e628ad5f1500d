//! A disk that does not confirm writes: nothing is acknowledged, no acknowledged write is lost, and
//! the store recovers.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{Health, StoreEvent};
use outlast_engine::{Scope, Store, StoreError};
use outlast_store::sqlite::{DiskFailure, FailPoint};
use outlast_testkit::within;

use crate::harness::{PlannedFailures, StoreFolder, recovered};

async fn store_with_failures(folder: &StoreFolder) -> (Arc<PlannedFailures>, Arc<dyn Store>) {
    let probe = Arc::new(PlannedFailures::default());
    let store = folder.open_with(probe.options()).await;
    (probe, store)
}

fn is_unavailable<T>(written: &Result<T, StoreError>) -> bool {
    matches!(written, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn a_failed_commit_is_unavailable_and_the_store_recovers() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    let kept = fixtures::stored(&store, fixtures::task(1)).await;

    probe.fail(FailPoint::BeforeCommit, DiskFailure::SyncError);
    let insert = store.insert(fixtures::insertion(fixtures::task_with_key(
        2,
        &fixtures::ada(),
        "k",
    )));
    assert!(is_unavailable(&insert.await));
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    assert_eq!(fixtures::snapshot(&store, fixtures::id(2)).await, None);
    let meanwhile = store.insert(fixtures::insertion(fixtures::task(3))).await;
    assert!(is_unavailable(&meanwhile), "down for all callers");
    assert!(
        fixtures::snapshot(&store, kept.id).await.is_some(),
        "reads go on"
    );

    recovered(&store).await;
    let again = fixtures::stored(&store, fixtures::task_with_key(2, &fixtures::ada(), "k")).await;
    fixtures::ended(&store, &again, fixtures::result("2")).await;
    fixtures::ended(&store, &kept, fixtures::result("1")).await;
    let usage = store.usage(&fixtures::ada()).await.unwrap();
    assert_eq!((usage.owner_open, usage.owner_retained), (0, 2));
    drop(store);
    let store = folder.open().await;
    assert_eq!(
        fixtures::listed(&store, &fixtures::ada(), 9).await,
        [again.id, kept.id]
    );
}

#[tokio::test]
async fn an_unacknowledged_insertion_is_undone() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    probe.fail(FailPoint::AfterCommit, DiskFailure::SyncError);
    let insert = store.insert(fixtures::insertion(fixtures::task_with_key(
        1,
        &fixtures::ada(),
        "k",
    )));
    assert!(is_unavailable(&insert.await));
    assert_eq!(
        folder.query::<u32>("SELECT count(*) FROM tasks"),
        1,
        "it did reach the file"
    );

    recovered(&store).await;
    assert_eq!(folder.query::<u32>("SELECT count(*) FROM tasks"), 0);
    assert_eq!(fixtures::snapshot(&store, fixtures::id(1)).await, None);
    fixtures::stored(&store, fixtures::task_with_key(1, &fixtures::ada(), "k")).await;
}

#[tokio::test]
async fn an_unacknowledged_change_stays_if_the_file_has_it() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    let mut feed = store.join(fixtures::NODE_A).await.unwrap();
    let ending = fixtures::stored(&store, fixtures::task(1)).await;
    let leaving = fixtures::stored(&store, fixtures::task(2)).await;

    probe.fail(FailPoint::AfterCommit, DiskFailure::SyncError);
    let end = fixtures::change(
        &ending,
        fixtures::end(&ending, fixtures::result("7")),
        fixtures::CREATED,
    );
    assert!(is_unavailable(&store.replace(end).await));
    assert_eq!(fixtures::open_snapshot(&store, ending.id).await, ending);
    recovered(&store).await;
    assert!(fixtures::ended_snapshot(&store, ending.id).await.revision.0 == 2);
    assert_eq!(
        fixtures::body(&store, ending.id).await,
        Some(fixtures::raw("7"))
    );
    assert_eq!(
        within("an event of the feed", feed.recv()).await,
        Some(StoreEvent::TaskChanged(ending.id)),
        "the feed of its own node reports the change"
    );

    probe.fail(FailPoint::AfterCommit, DiskFailure::SyncError);
    let gone = store.remove(fixtures::NODE_A, vec![(leaving.id, leaving.revision)]);
    assert!(is_unavailable(&gone.await));
    recovered(&store).await;
    assert_eq!(fixtures::snapshot(&store, leaving.id).await, None);
    assert_eq!(
        within("an event of the feed", feed.recv()).await,
        Some(StoreEvent::TaskChanged(leaving.id))
    );
    let usage = store.usage(&fixtures::ada()).await.unwrap();
    assert_eq!((usage.open, usage.retained), (0, 1));
}

#[tokio::test]
async fn a_change_that_did_not_reach_the_file_is_undone() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;
    probe.fail(FailPoint::BeforeCommit, DiskFailure::SyncError);
    let end = fixtures::change(
        &task,
        fixtures::end(&task, fixtures::result("7")),
        fixtures::CREATED,
    );
    assert!(is_unavailable(&store.replace(end).await));
    recovered(&store).await;
    assert_eq!(fixtures::open_snapshot(&store, task.id).await, task);
    fixtures::ended(&store, &task, fixtures::result("8")).await;
    assert_eq!(
        fixtures::body(&store, task.id).await,
        Some(fixtures::raw("8"))
    );
}

#[tokio::test]
async fn a_store_stays_down_until_it_can_be_opened() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    probe.fail(FailPoint::BeforeCommit, DiskFailure::SyncError);
    probe.fail(FailPoint::BeforeReopen, DiskFailure::SyncError);
    probe.fail(FailPoint::BeforeReopen, DiskFailure::SyncError);
    assert!(is_unavailable(
        &store.insert(fixtures::insertion(fixtures::task(1))).await
    ));
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    recovered(&store).await;
    assert_eq!(probe.planned(), 0, "two attempts to open it failed before");
    fixtures::stored(&store, fixtures::task(1)).await;
}

#[tokio::test]
async fn a_store_that_is_down_can_be_closed() {
    let folder = StoreFolder::new();
    let (probe, store) = store_with_failures(&folder).await;
    let kept = fixtures::stored(&store, fixtures::task(1)).await;
    probe.fail(FailPoint::BeforeCommit, DiskFailure::SyncError);
    assert!(is_unavailable(
        &store.insert(fixtures::insertion(fixtures::task(2))).await
    ));
    store.close().await.unwrap();
    assert_eq!(*store.health().borrow(), Health::Closed);
    let store = folder.open().await;
    assert_eq!(
        fixtures::listed(&store, &fixtures::ada(), 9).await,
        [kept.id]
    );
}

#[tokio::test]
async fn a_task_whose_row_was_deleted_fails_alone() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let lost = fixtures::stored(&store, fixtures::task(1)).await;
    let fine = fixtures::stored(&store, fixtures::task(2)).await;
    let file = rusqlite::Connection::open(folder.path()).unwrap();
    let id = lost.id.to_string();
    file.execute("DELETE FROM opened WHERE id = ?1", [&id])
        .unwrap();

    let change = |task| fixtures::change(task, fixtures::status(task, "on"), fixtures::CREATED);
    let (first, second) = tokio::join!(store.replace(change(&lost)), store.replace(change(&fine)));
    let refused = first.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
    assert!(refused.to_string().contains(&id), "{refused}");
    assert_eq!(second.unwrap().revision.0, 2);
    assert_eq!(*store.health().borrow(), Health::Ready);
    // A task that is missing can be removed.
    fixtures::removed(&store, &lost).await;
    assert_eq!(fixtures::snapshot(&store, lost.id).await, None);
}

#[tokio::test]
async fn the_writer_waits_for_another_program_that_writes() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let end = fixtures::ended(&store, &task, fixtures::result("1"));
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    tokio::join!(end, release);
    assert!(
        store
            .body(&Scope::AnyTask, task.id)
            .await
            .unwrap()
            .is_some()
    );
}
