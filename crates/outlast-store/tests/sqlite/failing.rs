//! A disk that does not confirm: nothing is acknowledged, nothing acknowledged is lost, and the store
//! recovers.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::laws::given;
use outlast_engine::store::Health;
use outlast_engine::{Scope, Store, StoreError};
use outlast_store::sqlite::{FailAs, Moment};

use crate::opened::{Place, Saboteur, recovered};

async fn sabotaged(place: &Place) -> (Arc<Saboteur>, Arc<dyn Store>) {
    let probe = Arc::new(Saboteur::default());
    let store = place.open_with(probe.options()).await;
    (probe, store)
}

fn is_unavailable<T>(written: &Result<T, StoreError>) -> bool {
    matches!(written, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn a_failed_commit_is_unavailable_and_passes() {
    let place = Place::new();
    let (probe, store) = sabotaged(&place).await;
    let kept = given::stored(&store, given::task(1)).await;

    probe.fail(Moment::BeforeCommit, FailAs::FsyncError);
    let insert = store.insert(given::insertion(given::task_with_key(
        2,
        &given::ada(),
        "k",
    )));
    assert!(is_unavailable(&insert.await));
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    assert_eq!(given::shown(&store, given::id(2)).await, None);
    let meanwhile = store.insert(given::insertion(given::task(3))).await;
    assert!(is_unavailable(&meanwhile), "down for everybody");
    assert!(given::shown(&store, kept.id).await.is_some(), "reads go on");

    recovered(&store).await;
    let again = given::stored(&store, given::task_with_key(2, &given::ada(), "k")).await;
    given::ended(&store, &again, given::result("2")).await;
    given::ended(&store, &kept, given::result("1")).await;
    let usage = store.usage(&given::ada()).await.unwrap();
    assert_eq!((usage.owner_open, usage.owner_retained), (0, 2));
    drop(store);
    let store = place.open().await;
    assert_eq!(
        given::listed(&store, &given::ada(), 9).await,
        [again.id, kept.id]
    );
}

#[tokio::test]
async fn what_nobody_heard_of_did_not_take_place() {
    let place = Place::new();
    let (probe, store) = sabotaged(&place).await;
    let mut feed = store.join(given::HERE).await.unwrap();
    let ending = given::stored(&store, given::task(1)).await;
    let leaving = given::stored(&store, given::task(2)).await;

    probe.fail(Moment::AfterCommit, FailAs::FsyncError);
    let insert = store.insert(given::insertion(given::task_with_key(
        3,
        &given::ada(),
        "k",
    )));
    assert!(is_unavailable(&insert.await));
    recovered(&store).await;
    assert_eq!(given::shown(&store, given::id(3)).await, None);

    probe.fail(Moment::AfterCommit, FailAs::FsyncError);
    let end = given::change(
        &ending,
        given::end(&ending, given::result("7")),
        given::CREATED,
    );
    assert!(is_unavailable(&store.replace(end).await));
    recovered(&store).await;
    assert_eq!(given::shown_open(&store, ending.id).await, ending);

    probe.fail(Moment::AfterCommit, FailAs::FsyncError);
    let gone = store.remove(given::HERE, vec![(leaving.id, leaving.revision)]);
    assert!(is_unavailable(&gone.await));
    recovered(&store).await;
    assert_eq!(given::shown_open(&store, leaving.id).await, leaving);
    assert!(feed.try_recv().is_err(), "nothing happened");
    assert_eq!(place.look::<u32>("SELECT count(*) FROM tasks"), 2);

    // Nor does it later, although it did reach the disk.
    let copy = place.copy();
    for store in [store, copy.open().await] {
        let usage = store.usage(&given::ada()).await.unwrap();
        assert_eq!((usage.open, usage.retained), (2, 2));
        given::stored(&store, given::task_with_key(3, &given::ada(), "k")).await;
        given::ended(&store, &ending, given::result("8")).await;
        given::removed(&store, &leaving).await;
    }
}

#[tokio::test]
async fn a_change_that_never_reached_the_file_is_gone() {
    let place = Place::new();
    let (probe, store) = sabotaged(&place).await;
    let task = given::stored(&store, given::task(1)).await;
    probe.fail(Moment::BeforeCommit, FailAs::FsyncError);
    let end = given::change(&task, given::end(&task, given::result("7")), given::CREATED);
    assert!(is_unavailable(&store.replace(end).await));
    recovered(&store).await;
    assert_eq!(given::shown_open(&store, task.id).await, task);
    given::ended(&store, &task, given::result("8")).await;
    assert_eq!(given::body(&store, task.id).await, Some(given::raw("8")));
}

#[tokio::test]
async fn a_store_stays_down_until_it_can_be_opened() {
    let place = Place::new();
    let (probe, store) = sabotaged(&place).await;
    probe.fail(Moment::BeforeCommit, FailAs::FsyncError);
    probe.fail(Moment::BeforeReopen, FailAs::FsyncError);
    probe.fail(Moment::BeforeReopen, FailAs::FsyncError);
    assert!(is_unavailable(
        &store.insert(given::insertion(given::task(1))).await
    ));
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    recovered(&store).await;
    given::stored(&store, given::task(1)).await;
}

#[tokio::test]
async fn a_store_that_is_down_can_be_closed() {
    let place = Place::new();
    let (probe, store) = sabotaged(&place).await;
    let kept = given::stored(&store, given::task(1)).await;
    probe.fail(Moment::BeforeCommit, FailAs::FsyncError);
    assert!(is_unavailable(
        &store.insert(given::insertion(given::task(2))).await
    ));
    store.close().await.unwrap();
    assert_eq!(*store.health().borrow(), Health::Closed);
    let store = place.open().await;
    assert_eq!(given::listed(&store, &given::ada(), 9).await, [kept.id]);
}

#[tokio::test]
async fn a_task_whose_row_somebody_deleted_stays_deleted_alone() {
    let place = Place::new();
    let store = place.open().await;
    let lost = given::stored(&store, given::task(1)).await;
    let fine = given::stored(&store, given::task(2)).await;
    place.settle();
    let file = rusqlite::Connection::open(place.path()).unwrap();
    let id = lost.id.to_string();
    file.execute("DELETE FROM opened WHERE id = ?1", [&id])
        .unwrap();

    for task in [&lost, &fine] {
        given::changed(&store, task, given::status(task, "on")).await;
    }
    assert_eq!(
        place.look::<String>("SELECT group_concat(id) FROM tasks"),
        fine.id.to_string()
    );
    assert_eq!(*store.health().borrow(), Health::Ready);
    drop(store);
    let store = place.open().await;
    assert_eq!(given::shown(&store, lost.id).await, None);
    assert_eq!(given::shown_open(&store, fine.id).await.revision.0, 2);
}

#[tokio::test]
async fn another_program_that_writes_is_waited_for() {
    let place = Place::new();
    let store = place.open().await;
    let task = given::stored(&store, given::task(1)).await;
    let other = rusqlite::Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let end = given::ended(&store, &task, given::result("1"));
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    tokio::join!(end, release);
    assert!(store.body(&Scope::Anyone, task.id).await.unwrap().is_some());
}
