//! A copy of a store under load contains every task that was acknowledged before the copy started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_engine::TaskId;
use outlast_engine::laws::fixtures;
use outlast_store::sqlite::{BackupError, Existing, backup};
use outlast_store::{OpenError, Sqlite, SqliteOptions};

use crate::harness::StoreFolder;
use crate::locking::{another_process, lines_after};

/// A server under load in a separate process, and the tasks that it acknowledged so far.
struct ServerUnderLoad {
    folder: StoreFolder,
    child: Child,
    acknowledged: Arc<Mutex<Vec<TaskId>>>,
}

impl ServerUnderLoad {
    fn start() -> Self {
        let folder = StoreFolder::new();
        let mut child = another_process(&folder, "crash::write_until_killed")
            .spawn()
            .unwrap();
        let acknowledged = Arc::<Mutex<Vec<TaskId>>>::default();
        let (lines, acknowledged_lines) =
            (lines_after(&mut child, "confirmed "), acknowledged.clone());
        std::thread::spawn(move || {
            for line in lines {
                let id = line
                    .split_once(' ')
                    .and_then(|(id, _)| id.parse::<TaskId>().ok());
                acknowledged_lines.lock().unwrap().extend(id);
            }
        });
        let loaded = Self {
            folder,
            child,
            acknowledged,
        };
        loaded.wait_for(300);
        loaded
    }

    fn wait_for(&self, count: usize) {
        for _ in 0..3_000 {
            if self.acknowledged.lock().unwrap().len() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server acknowledges no further tasks");
    }

    /// Copies the store with `way`, and checks that the copy is complete.
    async fn check(&self, way: impl FnOnce(&Path, &Path)) {
        let before = self.acknowledged.lock().unwrap().clone();
        let copy = StoreFolder::new();
        way(&self.folder.path(), &copy.path());
        assert!(!copy.file("tasks.db-wal").exists(), "one file");
        // The server continued.
        self.wait_for(before.len() + 100);
        let store = copy.open().await;
        for id in &before {
            assert!(
                fixtures::snapshot(&store, *id).await.is_some(),
                "{id} is lost"
            );
        }
        fixtures::stored(&store, fixtures::task(10_000_000)).await;
    }
}

impl Drop for ServerUnderLoad {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Runs SQL with the `sqlite3` tool. Returns false if it is not installed.
fn sqlite3(path: &Path, command: &str) -> bool {
    let done = Command::new("sqlite3").arg(path).arg(command).output();
    match done {
        Ok(done) => {
            assert!(done.status.success(), "{done:?}");
            true
        }
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_backup_under_load_is_complete() {
    let loaded = ServerUnderLoad::start();
    for _ in 0..3 {
        loaded
            .check(|from, to| backup(from, to, Existing::Keep).unwrap())
            .await;
    }
}

#[tokio::test]
async fn vacuum_into_under_load_is_complete() {
    let loaded = ServerUnderLoad::start();
    loaded
        .check(|from, to| {
            let sql = format!("VACUUM INTO '{}'", to.display());
            if !sqlite3(from, &sql) {
                let from = rusqlite::Connection::open(from).unwrap();
                from.execute_batch(&sql).unwrap();
            }
        })
        .await;
}

#[tokio::test]
async fn the_backup_of_sqlite3_under_load_is_complete() {
    let loaded = ServerUnderLoad::start();
    loaded
        .check(|from, to| {
            if !sqlite3(from, &format!(".backup '{}'", to.display())) {
                let from = rusqlite::Connection::open(from).unwrap();
                let all = |_: rusqlite::backup::Progress| ();
                from.backup("main", to, Some(all)).unwrap();
            }
        })
        .await;
}

#[tokio::test]
async fn a_backup_replaces_an_existing_file_only_on_request() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    let copy = folder.file("copy.db");
    fs::write(&copy, "precious").unwrap();
    let refused = backup(folder.path(), &copy, Existing::Keep);
    assert!(matches!(refused, Err(BackupError::Exists(_))));
    assert_eq!(fs::read(&copy).unwrap(), b"precious");
    backup(folder.path(), &copy, Existing::Replace).unwrap();
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.file("copy.db.new").exists());
    // Never the store itself while it is in use.
    let refused = backup(&copy, folder.path(), Existing::Replace);
    assert!(matches!(
        refused,
        Err(BackupError::Open(OpenError::InUse { .. }))
    ));
    let copied = Sqlite::open(&copy, SqliteOptions::default()).await.unwrap();
    let copied: Arc<dyn outlast_engine::Store> = Arc::new(copied);
    assert!(fixtures::snapshot(&copied, fixtures::id(1)).await.is_some());
    let refused = backup(
        folder.file("none.db"),
        folder.file("two.db"),
        Existing::Keep,
    );
    assert!(matches!(refused, Err(BackupError::NoStore(_))));
}

#[tokio::test]
async fn the_original_log_is_not_applied_to_a_copy() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    backup(folder.path(), folder.file("copy.db"), Existing::Keep).unwrap();
    fixtures::stored(&store, fixtures::task(2)).await;
    let crashed = folder.copy();
    drop(store);
    fs::rename(crashed.file("copy.db"), crashed.path()).unwrap();
    fs::remove_file(crashed.file("tasks.db.lock")).unwrap();
    let refused = crashed.refusal().await.to_string();
    assert!(refused.contains("log of another file"), "{refused}");
}

#[tokio::test]
async fn the_original_log_is_not_applied_to_a_vacuumed_copy() {
    // With and without free pages, which `VACUUM` removes: without them a check of the structure
    // finds nothing.
    for removed in [0, 150] {
        let folder = StoreFolder::new();
        let store = folder.open().await;
        for (n, task) in fixtures::stored_all(&store, 0..200)
            .await
            .iter()
            .enumerate()
        {
            if n < removed {
                fixtures::removed(&store, task).await;
            }
        }
        let sql = format!("VACUUM INTO '{}'", folder.file("copy.db").display());
        let reader = rusqlite::Connection::open(folder.path()).unwrap();
        reader.execute_batch(&sql).unwrap();
        fixtures::stored_all(&store, 200..260).await;
        let crashed = folder.copy();
        drop((store, reader));
        fs::rename(crashed.file("copy.db"), crashed.path()).unwrap();
        fs::remove_file(crashed.file("tasks.db.lock")).unwrap();
        let refused = crashed.refusal().await.to_string();
        assert!(refused.contains("log of another file"), "{refused}");
        // Without the log the copy is a store.
        fs::remove_file(crashed.file("tasks.db-wal")).unwrap();
        let copy = crashed.open().await;
        assert!(
            fixtures::snapshot(&copy, fixtures::id(199)).await.is_some(),
            "199 is lost"
        );
    }
}

#[tokio::test]
async fn the_log_of_a_store_vacuumed_in_place_is_applied() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored_all(&store, 0..200).await;
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    for checkpoint in ["", "PRAGMA wal_checkpoint(PASSIVE)"] {
        other.execute_batch("VACUUM").unwrap();
        other.execute_batch(checkpoint).unwrap();
        fixtures::stored(&store, fixtures::task(1_000 + checkpoint.len() as u64)).await;
        let crashed = folder.copy();
        let copy = crashed.open().await;
        let listed = fixtures::listed(&copy, &fixtures::ada(), 999).await;
        assert_eq!(listed.len(), 201 + usize::from(!checkpoint.is_empty()));
    }
}

#[tokio::test]
async fn a_damaged_store_gives_no_backup() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored_all(&store, 0..200).await;
    store.close().await.unwrap();
    let mut bytes = fs::read(folder.path()).unwrap();
    let page = bytes.len() / 8_192 - 1;
    bytes[page * 8_192..].fill(0xa5);
    fs::write(folder.path(), &bytes).unwrap();
    let refused = backup(folder.path(), folder.file("copy.db"), Existing::Keep);
    assert!(matches!(refused, Err(BackupError::Open(_))), "{refused:?}");
    assert!(!folder.file("copy.db").exists());
    assert!(!folder.file("copy.db.new").exists());
    assert_eq!(fs::read(folder.path()).unwrap(), bytes);
}
