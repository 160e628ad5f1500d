//! Other programs next to a running store: they see every acknowledged task immediately.

use std::process::Command;
use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{Filter, Status};
use outlast_engine::{Owner, Scope, Store};
use outlast_store::sqlite::SqliteReader;

use crate::harness::StoreFolder;
use crate::locking::{another_process, given_path, lines_after};

#[tokio::test]
async fn a_reader_changes_nothing_and_needs_no_lock() {
    let folder = StoreFolder::new();
    assert!(SqliteReader::open(folder.path()).unwrap().is_none());
    assert!(!folder.path().exists());
    let store = folder.open().await;
    for n in 0..8 {
        let task = fixtures::stored(&store, fixtures::task(n)).await;
        if n < 4 {
            fixtures::ended(&store, &task, fixtures::result("{\"content\":[]}")).await;
        }
    }
    let reader = SqliteReader::open(folder.path()).unwrap().unwrap();
    let of_ada = Filter {
        owner: Some(fixtures::ada()),
        ..Filter::default()
    };
    let tasks = reader.search(&of_ada, 5).unwrap();
    assert_eq!(tasks.len(), 5);
    assert_eq!(reader.search(&Filter::default(), 5).unwrap(), tasks);
    assert_eq!(reader.search(&Filter::default(), 100).unwrap().len(), 8);
    let completed = Filter {
        statuses: [Status::Completed].into_iter().collect(),
        ..Filter::default()
    };
    let newest_completed = reader.search(&Filter::default(), 8).unwrap().split_off(4);
    assert_eq!(reader.search(&completed, 3).unwrap(), newest_completed[..3]);
    assert_eq!(reader.search(&completed, 9).unwrap().len(), 4);
    let stranger = Scope::OwnedBy(Owner::principal("eve"));
    assert!(reader.task(&stranger, tasks[4].id).unwrap().is_none());
    let scope = Scope::OwnedBy(fixtures::ada());
    assert!(reader.body(&scope, tasks[4].id).unwrap().is_some());
}

#[tokio::test]
async fn a_reader_finds_ids_by_their_beginning() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    for n in 0..3 {
        fixtures::stored(&store, fixtures::task(n)).await;
    }
    let reader = SqliteReader::open(folder.path()).unwrap().unwrap();
    let scope = Scope::OwnedBy(fixtures::ada());
    let tasks = reader.search(&Filter::default(), 3).unwrap();
    let newest_first: Vec<_> = tasks.iter().map(|task| task.id).collect();
    assert_eq!(reader.ids(&scope, "", 9).unwrap(), newest_first);
    let whole = newest_first[1].to_string();
    assert_eq!(reader.ids(&scope, &whole, 9).unwrap(), [newest_first[1]]);
    assert!(reader.ids(&scope, "%", 9).unwrap().is_empty());
    let stranger = Scope::OwnedBy(Owner::principal("eve"));
    assert!(reader.ids(&stranger, "", 9).unwrap().is_empty());
}

#[tokio::test]
async fn a_reader_knows_whether_a_process_has_the_store_open() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let reader = SqliteReader::open(folder.path()).unwrap().unwrap();
    let holder = reader.holder().unwrap().expect("this process has it open");
    assert_eq!(holder.process, Some(std::process::id()));
    store.close().await.unwrap();
    drop(store);
    assert_eq!(reader.holder().unwrap(), None);
    drop(folder.open().await);
}

#[tokio::test]
#[ignore = "runs in a process of its own, started by the test below"]
async fn acknowledge_tasks() {
    let Some(path) = given_path() else { return };
    let store = outlast_store::Sqlite::open(path, Default::default()).await;
    let store: Arc<dyn Store> = Arc::new(store.unwrap());
    for n in 0..20 {
        let task = fixtures::stored(&store, fixtures::task(n)).await;
        println!("\nacknowledged {} working", task.id);
        // The other process responds by creating a file.
        while !std::path::Path::new(&format!("{}.seen-{n}", given_path().unwrap())).exists() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        fixtures::ended(&store, &task, fixtures::result("{\"n\":1}")).await;
        println!("\nacknowledged {} result", task.id);
    }
    std::future::pending::<()>().await;
}

/// The server is a separate process, and so is the reader: `sqlite3` if it is installed, this
/// process otherwise.
#[test]
fn sqlite3_sees_each_acknowledged_task_at_once() {
    let folder = StoreFolder::new();
    let mut child = another_process(&folder, "reading::acknowledge_tasks")
        .spawn()
        .unwrap();
    let mut seen = 0;
    for line in lines_after(&mut child, "acknowledged ").take(40) {
        let (id, state) = line.split_once(' ').unwrap();
        let sql = format!("SELECT state FROM tasks WHERE id = '{id}'");
        assert_eq!(select(&folder, &sql), state, "{id}");
        if state == "working" {
            std::fs::write(folder.file(&format!("tasks.db.seen-{seen}")), "").unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 20);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The value of a query, read outside of the server.
fn select(folder: &StoreFolder, sql: &str) -> String {
    let by_tool = Command::new("sqlite3").arg(folder.path()).arg(sql).output();
    match by_tool {
        Ok(found) => String::from_utf8(found.stdout).unwrap().trim().to_owned(),
        Err(_) => folder.query(sql),
    }
}
