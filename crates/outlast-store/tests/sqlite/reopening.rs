//! After a store is opened again, everything is as before.

use std::fs;
use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{Page, Record, Snapshot};
use outlast_engine::task::{Lifetime, ResumeState, TtlPolicy};
use outlast_engine::transition::Command;
use outlast_engine::{
    ErrorCode, InputKey, InputKind, InputRequest, InputTiming, Outcome, Owner, RetryClass, Scope,
    Store, Task, TaskId,
};
use outlast_wire::Raw;

use crate::harness::StoreFolder;

#[tokio::test]
async fn a_closed_store_opens_as_it_was() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let before = fill(&store).await;
    store.close().await.unwrap();
    let store = folder.open().await;
    assert_eq!(StoreDump::of(&store).await, before);
}

#[tokio::test]
async fn a_dropped_store_opens_as_it_was() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let before = fill(&store).await;
    drop(store);
    let store = folder.open().await;
    assert_eq!(StoreDump::of(&store).await, before);
}

#[tokio::test]
async fn files_copied_from_a_running_store_open_as_it_was() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let before = fill(&store).await;
    let copy = StoreFolder::new();
    for name in ["tasks.db", "tasks.db-wal"] {
        fs::copy(folder.file(name), copy.file(name)).unwrap();
    }
    let store = copy.open().await;
    assert_eq!(StoreDump::of(&store).await, before);
}

#[tokio::test]
async fn a_reopened_store_continues() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let task = fixtures::stored(&store, fixtures::task_with_key(1, &fixtures::ada(), "once")).await;
    drop(store);

    let store = folder.open().await;
    let claimed = store.claim(fixtures::NODE_B, 10).await.unwrap();
    assert_eq!(claimed.len(), 1, "its executor is gone");
    let task = fixtures::changed(&store, &task, fixtures::take_over(fixtures::NODE_B)).await;
    let task = fixtures::ended(&store, &task, fixtures::result("1")).await;
    drop(store);

    let store = folder.open().await;
    let again = store.insert(fixtures::insertion(fixtures::task_with_key(
        2,
        &fixtures::ada(),
        "once",
    )));
    assert!(matches!(
        again.await.unwrap(),
        outlast_engine::store::InsertResult::Existing(id) if id == task.id
    ));
    let usage = store.usage(&fixtures::ada()).await.unwrap();
    assert_eq!((usage.owner_open, usage.owner_retained), (0, 1));
    fixtures::removed(&store, &task).await;
}

#[tokio::test]
async fn a_creation_number_is_never_reused() {
    let folder = StoreFolder::new();
    let mut last = 0;
    for round in 0..4 {
        let store = folder.open().await;
        let task = fixtures::stored(&store, fixtures::task(round)).await;
        let position: u64 = folder.query::<i64>("SELECT max(row & 68719476735) FROM tasks") as u64;
        assert!(position > last, "{position} after {last}");
        last = position;
        // The newest row is deleted when the store is opened again.
        fixtures::removed(&store, &task).await;
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
    }
}

/// Everything that a store returns.
#[derive(Debug, PartialEq)]
struct StoreDump {
    tasks: Vec<(Snapshot, Task, Option<Raw>)>,
    pages: Vec<Page>,
    records: Vec<Record>,
    due: Vec<(TaskId, outlast_engine::Revision)>,
}

impl StoreDump {
    async fn of(store: &Arc<dyn Store>) -> Self {
        let mut tasks = Vec::new();
        let mut pages = Vec::new();
        for owner in [fixtures::ada(), odd_owner()] {
            let page = store.page(&owner, None, 100).await.unwrap();
            for shown in &page.tasks {
                let id = shown.id();
                let task = store
                    .load(&Scope::OwnedBy(owner.clone()), id)
                    .await
                    .unwrap();
                let task = Task::clone(&task.expect("a listed task can be loaded").shared());
                tasks.push((shown.clone(), task, fixtures::body(store, id).await));
            }
            let second = store.page(&owner, None, 2).await.unwrap().next;
            pages.push(page);
            pages.push(store.page(&owner, second, 3).await.unwrap());
        }
        let mut records = Vec::new();
        for kind in ["session", "key"] {
            records.extend(store.records(kind, None, fixtures::CREATED).await.unwrap());
        }
        let due = store
            .due(fixtures::CREATED.plus(2 * fixtures::TTL_MS), 100)
            .await
            .unwrap();
        let mut due = due.tasks;
        due.sort();
        Self {
            tasks,
            pages,
            records,
            due,
        }
    }
}

/// Stores tasks in every state, with every field set in some of them.
async fn fill(store: &Arc<dyn Store>) -> StoreDump {
    fixtures::stored(store, fixtures::task(1)).await;

    let busy = fixtures::stored(store, rich_task(2)).await;
    let state = ResumeState(Arc::from(&[0, 1, 255][..]));
    let attempt = busy.attempt;
    let busy = fixtures::changed(store, &busy, Command::SaveResumeState { attempt, state }).await;
    let busy = fixtures::changed(store, &busy, fixtures::status(&busy, "näyttö \0 \"'")).await;
    let deadline = busy.updated.plus(5_000);
    fixtures::changed(store, &busy, Command::RequestCancel { deadline }).await;

    let asking = fixtures::stored(store, rich_task(3)).await;
    let asking = fixtures::changed(store, &asking, fixtures::request_input(&asking, "first")).await;
    let odd = InputRequest {
        kind: InputKind::SampleWithTools,
        params: Some(fixtures::raw("null")),
        timing: InputTiming::BeforeWork,
    };
    let command = Command::RequestInput {
        attempt: asking.attempt,
        key: InputKey::new("second \" key"),
        request: odd,
        limit: 9,
    };
    let asking = fixtures::changed(store, &asking, command).await;
    let mut plain = fixtures::input_request();
    plain.params = None;
    let command = Command::RequestInput {
        attempt: asking.attempt,
        key: InputKey::new("third"),
        request: plain,
        limit: 9,
    };
    let asking = fixtures::changed(store, &asking, command).await;
    fixtures::changed(store, &asking, fixtures::provide_input("first")).await;

    let mut chatty = fixtures::stored(store, fixtures::task(4)).await;
    for n in 0..80 {
        chatty = fixtures::changed(store, &chatty, fixtures::status(&chatty, &n.to_string())).await;
    }
    let chatty = fixtures::changed(store, &chatty, fixtures::take_over(fixtures::NODE_B)).await;
    fixtures::ended(
        store,
        &chatty,
        fixtures::result("{ \"a\" : [1.0e2, \"\\u0000\"] }"),
    )
    .await;

    for (n, outcome) in (5..).zip([
        Outcome::ToolError(fixtures::raw("{\"isError\":true}"), Some("no paper".into())),
        Outcome::error(ErrorCode(-32000), "no toner"),
        Outcome::Cancelled,
        fixtures::result(&format!("\"{}\"", "x".repeat(100_000))),
    ]) {
        let task = fixtures::stored(store, rich_task(n)).await;
        fixtures::ended(store, &task, outcome).await;
    }
    let gone = fixtures::stored(store, fixtures::task(99)).await;
    fixtures::removed(store, &gone).await;

    let mut session = fixtures::record("session", "a");
    session.owner = Some(odd_owner());
    session.expires = Some(fixtures::CREATED.plus(3 * fixtures::TTL_MS));
    let writes = vec![
        fixtures::put(&session),
        fixtures::put(&fixtures::record("key", "b")),
    ];
    store.write_records(writes).await.unwrap();
    StoreDump::of(store).await
}

fn rich_task(n: u64) -> Task {
    let mut origin = fixtures::origin();
    origin.tool = None;
    origin.params = Some(fixtures::raw("[ ]"));
    origin.progress_token = Some(fixtures::raw("\"seven\""));
    origin.retry = RetryClass::Rerun;
    origin.accepts = [InputKind::Roots, InputKind::Sample].into_iter().collect();
    let new = outlast_engine::task::NewTask {
        owner: odd_owner(),
        origin: Arc::new(origin),
        request_key: Some(format!("request {n}").into()),
        lifetime: Lifetime::new(n * 100_000, TtlPolicy::KeepLive, Some(50_000)),
        poll_interval_ms: 250,
        ..fixtures::new_task(n)
    };
    Task::new(new, fixtures::CREATED.plus(n))
}

fn odd_owner() -> Owner {
    Owner::principal("Bj\u{f6}rk; DROP TABLE tasks --")
}
