//! P11: a file of every released schema opens, and a rollback has what it needs.
//!
//! `fixtures/v1.db` was written by a program of version 1: a result, a result with a letter of two
//! bytes, and an error, which expire in a hundred years.

use std::fs;

use outlast_engine::store::{Filter, Snapshot};
use outlast_engine::{Scope, Store};
use outlast_store::sqlite::SqliteReader;
use outlast_store::{OpenError, Sqlite, SqliteOptions};
use rusqlite::Connection;

use crate::harness::StoreFolder;

const V1: &[u8] = include_bytes!("fixtures/v1.db");

fn folder_with_v1() -> StoreFolder {
    let folder = StoreFolder::new();
    fs::write(folder.path(), V1).unwrap();
    folder
}

/// Every task with its body, oldest first.
async fn contents(store: &dyn Store) -> Vec<(Snapshot, Option<String>)> {
    let page = store.search(&Filter::default(), None, 10).await.unwrap();
    let mut found = Vec::new();
    for task in page.tasks.into_iter().rev() {
        let body = store.body(&Scope::AnyTask, task.id()).await.unwrap();
        found.push((task, body.map(|body| body.as_str().to_owned())));
    }
    found
}

/// The definitions of all tables and views.
fn schema(path: &std::path::Path) -> Vec<String> {
    let file = Connection::open(path).unwrap();
    let mut rows = file
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    let rows = rows.query_map((), |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_store_of_version_1_is_upgraded_with_its_tasks() {
    let folder = folder_with_v1();
    assert_eq!(folder.query::<u32>("PRAGMA user_version"), 1);
    let size = "SELECT body_size FROM overview WHERE what = 'echo'";
    assert_eq!(folder.query::<u32>(size), 44, "characters");
    let store = folder.open().await;
    let found = contents(&*store).await;
    let bodies: Vec<_> = found
        .iter()
        .map(|(_, body)| body.as_deref().unwrap_or_default())
        .collect();
    assert!(
        bodies[0].contains("schön") && bodies[1].contains("waited"),
        "{bodies:?}"
    );
    assert!(bodies[2].contains("-32603"), "{bodies:?}");
    let name = |at: usize| found[at].0.tool().map(str::to_owned);
    assert_eq!(
        [name(0), name(1), name(2)].map(Option::unwrap),
        ["echo", "wait", "crash"]
    );
    store.close().await.unwrap();
    assert_eq!(folder.query::<u32>("PRAGMA user_version"), 2);
    assert_eq!(folder.query::<u32>(size), 45, "bytes");
    // It equals a new store, and opens again without another copy.
    let new = StoreFolder::new();
    new.open().await.close().await.unwrap();
    assert_eq!(schema(&folder.path()), schema(&new.path()));
    fs::remove_file(folder.file("tasks.db.v1")).unwrap();
    let store = folder.open().await;
    assert_eq!(contents(&*store).await, found);
    assert!(!folder.file("tasks.db.v1").exists());
}

#[tokio::test]
async fn a_rollback_uses_the_copy_of_before_the_upgrade() {
    let folder = folder_with_v1();
    let before = schema(&folder.path());
    let store = folder.open().await;
    let found = contents(&*store).await;
    store.close().await.unwrap();
    // What an older program says about the new file, shown with a file that is newer than this one.
    let upgraded = folder.copy();
    let newer = Connection::open(upgraded.path()).unwrap();
    newer.pragma_update(None, "user_version", 3).unwrap();
    drop(newer);
    let refused = upgraded.refusal().await;
    assert!(
        matches!(
            refused,
            OpenError::Newer {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{refused}"
    );
    // The copy is a complete store in the old version, which only its owner can read.
    let copy = StoreFolder::new();
    fs::copy(folder.file("tasks.db.v1"), copy.path()).unwrap();
    assert_eq!(copy.query::<u32>("PRAGMA user_version"), 1);
    assert_eq!(copy.query::<String>("PRAGMA integrity_check"), "ok");
    assert_eq!(schema(&copy.path()), before);
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(folder.file("tasks.db.v1"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // Its content is that of the file of before, which this program reads without a change, too.
    let reader = SqliteReader::open(copy.path()).unwrap().expect("a store");
    assert_eq!(
        reader.search(&Filter::default(), 10).unwrap().len(),
        found.len()
    );
    assert_eq!(copy.query::<u32>("PRAGMA user_version"), 1);
    let store = copy.open().await;
    assert_eq!(contents(&*store).await, found);
}

#[tokio::test]
async fn a_killed_or_full_upgrade_starts_again() {
    let folder = folder_with_v1();
    // A copy that a killed start has left half written.
    fs::write(folder.file("tasks.db.v1"), "half").unwrap();
    let store = folder.open().await;
    assert_eq!(contents(&*store).await.len(), 3);
    store.close().await.unwrap();
    let refused = folder_with_v1();
    // A folder in place of the copy: it cannot be written.
    fs::create_dir(refused.file("tasks.db.v1")).unwrap();
    fs::write(refused.file("tasks.db.v1").join("x"), "").unwrap();
    let opened = Sqlite::open(refused.path(), SqliteOptions::default()).await;
    assert!(opened.is_err());
    drop(opened);
    assert_eq!(refused.query::<u32>("PRAGMA user_version"), 1);
}
