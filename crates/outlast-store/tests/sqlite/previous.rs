//! P11: files of earlier releases open in this one. Each schema leaves a file behind in `files`.

use outlast_engine::store::Snapshot;
use outlast_engine::{Ending, Owner, Scope, Store};
use outlast_store::sqlite::Look;
use outlast_store::{Sqlite, SqliteOptions};

/// Four tasks that ended and four that were interrupted, one of them with an open question.
const SCHEMA_1: &[u8] = include_bytes!("files/schema-1.sqlite");

#[tokio::test]
async fn a_file_of_schema_1_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    std::fs::write(&path, SCHEMA_1).unwrap();
    let store = Sqlite::open(&path, SqliteOptions::default()).await.unwrap();
    let owner = Owner::Local;
    let scope = Scope::Of(owner.clone());
    let page = store.page(&owner, None, 100).await.unwrap();
    let (ended, open): (Vec<_>, Vec<_>) =
        page.tasks.iter().partition(|task| task.ending().is_some());
    assert_eq!((ended.len(), open.len()), (4, 4));
    let failed = ended
        .iter()
        .filter(|task| task.ending() == Some(Ending::ToolError));
    assert_eq!(failed.count(), 1);
    for task in ended {
        let body = store.body(&scope, task.id()).await.unwrap().unwrap();
        assert!(body.as_str().contains("content"), "{body:?}");
        let whole = store.load(&scope, task.id()).await.unwrap().unwrap();
        assert!(whole.timeline.moments.len() >= 2, "{whole:?}");
        assert!(whole.origin.params.is_some());
    }
    let asks = open.iter().filter(|task| match task {
        Snapshot::Open(task) => task.outstanding().is_some(),
        Snapshot::Ended(_) => false,
    });
    assert_eq!(asks.count(), 1);
    store.close().await.unwrap();
}

#[test]
fn a_look_into_a_file_changes_nothing_and_needs_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    assert!(Look::at(&path).unwrap().is_none());
    std::fs::write(&path, SCHEMA_1).unwrap();
    let store = Sqlite::open_blocking(&path, SqliteOptions::default()).unwrap();
    let look = Look::at(&path).unwrap().unwrap();
    let owner = Owner::Local;
    let tasks = look.newest(&Scope::Of(owner.clone()), 5).unwrap();
    assert_eq!(tasks.len(), 5);
    assert_eq!(look.newest(&Scope::Anyone, 5).unwrap(), tasks);
    assert_eq!(look.newest(&Scope::Anyone, 100).unwrap().len(), 8);
    let stranger = Scope::Of(Owner::principal("eve"));
    assert!(look.task(&stranger, tasks[4].id).unwrap().is_none());
    assert!(look.body(&Scope::Of(owner), tasks[4].id).unwrap().is_some());
    drop((look, store));
}
