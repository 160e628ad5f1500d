//! A full disk refuses new tasks and finishes those that exist.

use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::store::Health;
use outlast_engine::{Store, StoreError, Task};
use outlast_store::SqliteOptions;
use outlast_store::sqlite::{DiskFailure, FailPoint};

use crate::harness::{PlannedFailures, StoreFolder, recovered};

#[tokio::test]
async fn a_full_disk_refuses_new_tasks_and_finishes_old_ones() {
    let folder = StoreFolder::new();
    let probe = Arc::new(PlannedFailures::default());
    let store = folder.open_with(probe.options()).await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;

    probe.fail(FailPoint::BeforeCommit, DiskFailure::Full);
    let end = fixtures::change(
        &task,
        fixtures::end(&task, fixtures::result("1")),
        fixtures::CREATED,
    );
    let (refused, finished) = tokio::join!(
        store.insert(fixtures::insertion(fixtures::task(2))),
        store.replace(end)
    );
    let words = refused.unwrap_err().to_string();
    assert!(
        words.contains("disk full: new tasks are refused"),
        "{words}"
    );
    assert_eq!(finished.unwrap().revision.0, 2);
    assert!(matches!(*store.health().borrow(), Health::NoSpace(_)));
    assert!(
        !folder.file("tasks.db.reserve").exists(),
        "the reserve is given up"
    );

    recovered(&store).await;
    assert!(
        folder.file("tasks.db.reserve").exists(),
        "there is a reserve again"
    );
    fixtures::stored(&store, fixtures::task(2)).await;
}

#[tokio::test]
async fn a_full_file_refuses_new_tasks_and_finishes_old_ones() {
    let folder = StoreFolder::new();
    let options = SqliteOptions::default().with_max_bytes(2 << 20);
    let store = folder.open_with(options.clone()).await;
    let open = fill(&store).await;
    assert!(open.len() > 100, "{} tasks", open.len());
    assert!(matches!(*store.health().borrow(), Health::NoSpace(_)));

    let mut ended = Vec::new();
    for task in &open {
        ended.push(fixtures::ended(&store, task, fixtures::result("1")).await);
    }
    let gone = ended.iter().map(|task| (task.id, task.revision)).collect();
    let gone = store.remove(fixtures::NODE_A, gone).await.unwrap();
    assert_eq!(gone.len(), open.len());
    recovered(&store).await;
    assert_eq!(fill(&store).await.len(), open.len(), "all room is back");
}

#[tokio::test]
async fn a_file_past_its_limit_makes_room_by_removal() {
    let folder = StoreFolder::new();
    let options = SqliteOptions::default().with_max_bytes(1 << 20);
    let store = folder.open_with(options).await;
    let open = fill(&store).await;
    // Bodies of 100 kB, for which the reserve is too small at some point.
    let body = format!("\"{}\"", "x".repeat(100_000));
    let mut finished = Vec::new();
    let refused = loop {
        let task = &open[finished.len()];
        let end = fixtures::change(
            task,
            fixtures::end(task, fixtures::result(&body)),
            fixtures::CREATED,
        );
        match store.replace(end).await {
            Ok(task) => finished.push(task.shared()),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    let stuck = &open[finished.len()];
    assert_eq!(
        fixtures::open_snapshot(&store, stuck.id).await,
        *stuck,
        "nothing is lost"
    );

    // One batch in which an end does not fit and a removal frees space.
    let end = || {
        fixtures::change(
            stuck,
            fixtures::end(stuck, fixtures::result(&body)),
            fixtures::CREATED,
        )
    };
    let gone = finished
        .iter()
        .map(|task| (task.id, task.revision))
        .collect();
    let (_, gone) = tokio::join!(store.replace(end()), store.remove(fixtures::NODE_A, gone));
    assert_eq!(gone.unwrap().len(), finished.len());
    if fixtures::snapshot(&store, stuck.id)
        .await
        .unwrap()
        .ending()
        .is_none()
    {
        drop(store.replace(end()).await.unwrap());
    }
    let stuck = fixtures::loaded(&store, stuck.id).await.unwrap();
    fixtures::removed(&store, &stuck).await;
    fixtures::removed(&store, open.last().unwrap()).await;
    recovered(&store).await;
}

/// Stores tasks until no more are accepted.
async fn fill(store: &Arc<dyn Store>) -> Vec<Arc<Task>> {
    let mut open = Vec::new();
    for n in 0.. {
        let mut origin = fixtures::origin();
        origin.params = Some(fixtures::raw(&format!("\"{}\"", "p".repeat(2_000))));
        let new = outlast_engine::task::NewTask {
            origin: Arc::new(origin),
            ..fixtures::new_task(n)
        };
        let task = Task::new(new, fixtures::CREATED);
        match store.insert(fixtures::insertion(task.clone())).await {
            Ok(_) => open.push(Arc::new(task)),
            Err(StoreError::Unavailable(_)) => break,
            Err(other) => panic!("{other}"),
        }
    }
    open
}
