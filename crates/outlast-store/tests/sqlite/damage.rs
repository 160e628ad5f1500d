//! P12: a store that is damaged or incomplete is refused and not changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_engine::laws::fixtures;
use outlast_engine::store::Snapshot;
use outlast_engine::{Scope, Store, TaskId};
use outlast_store::{OpenError, Sqlite, SqliteOptions};
use outlast_wire::Raw;

use crate::harness::StoreFolder;
use crate::locking::{another_process, given_path, lines_after};

/// The files that contain tasks.
const FILES: [&str; 2] = ["tasks.db", "tasks.db-wal"];

/// The content of a store: revision, state and body of each task.
type Facts = BTreeMap<TaskId, (u32, bool, Option<Raw>)>;

async fn facts(store: &dyn Store) -> Result<Facts, outlast_engine::StoreError> {
    let mut facts = Facts::new();
    for task in store.page(&fixtures::ada(), None, usize::MAX).await?.tasks {
        let body = store.body(&Scope::AnyTask, task.id()).await?;
        let open = matches!(task, Snapshot::Open(_));
        facts.insert(task.id(), (task.revision().0, open, body));
    }
    Ok(facts)
}

#[tokio::test]
#[ignore = "runs in a process of its own, started by the tests below"]
async fn write_and_wait() {
    let Some(path) = given_path() else { return };
    let store = Sqlite::open(path, SqliteOptions::default()).await.unwrap();
    let store: std::sync::Arc<dyn Store> = std::sync::Arc::new(store);
    for n in 0..40 {
        let task = fixtures::stored(&store, fixtures::task(n)).await;
        if n % 2 == 0 {
            let text = format!("\"{}\"", "x".repeat(300 * (n as usize % 7)));
            fixtures::ended(&store, &task, fixtures::result(&text)).await;
        }
    }
    println!("\nwritten ");
    std::future::pending::<()>().await;
}

/// A store whose process was killed, and the tasks that it had acknowledged.
async fn killed() -> (StoreFolder, Facts) {
    let folder = StoreFolder::new();
    let mut child = another_process(&folder, "damage::write_and_wait")
        .spawn()
        .unwrap();
    assert!(lines_after(&mut child, "written").next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let copy = folder.copy();
    let store = Sqlite::open(copy.path(), SqliteOptions::default()).await;
    let facts = facts(&store.unwrap()).await.unwrap();
    assert_eq!(facts.len(), 40);
    (folder, facts)
}

/// A store that was closed, and the tasks that it had acknowledged.
async fn closed() -> (StoreFolder, Facts) {
    let (folder, facts) = killed().await;
    folder.open().await.close().await.unwrap();
    (folder, facts)
}

/// The bytes of all files that contain tasks.
fn bytes(folder: &StoreFolder) -> Vec<Option<Vec<u8>>> {
    FILES.map(|name| fs::read(folder.file(name)).ok()).into()
}

/// How a store with changed files opens.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum OpenOutcome {
    Refused,
    Whole,
    /// As many tasks as before, but one of them cannot be read or has another value.
    OneValue,
}

/// Opens a copy of `folder` after `change`. Fails if it opens without an error and is not complete.
async fn open_changed(
    folder: &StoreFolder,
    facts: &Facts,
    change: impl Fn(&StoreFolder),
) -> OpenOutcome {
    let copy = folder.copy();
    change(&copy);
    let before = bytes(&copy);
    let store = match Sqlite::open(copy.path(), SqliteOptions::default()).await {
        Ok(store) => store,
        Err(refused) => {
            assert!(
                matches!(
                    refused,
                    OpenError::Corrupt { .. }
                        | OpenError::Incomplete { .. }
                        | OpenError::Foreign { .. }
                        | OpenError::Newer { .. }
                        | OpenError::Sqlite { .. }
                ),
                "{refused}"
            );
            assert!(refused.to_string().contains("tasks.db"), "{refused}");
            assert!(bytes(&copy) == before, "changed, although {refused}");
            return OpenOutcome::Refused;
        }
    };
    let mut differences = 0;
    let page = store
        .page(&fixtures::ada(), None, usize::MAX)
        .await
        .unwrap();
    for (id, (revision, open, body)) in facts {
        let found = page.tasks.iter().find(|task| task.id() == *id);
        let same = found.is_some_and(|task| {
            task.revision().0 == *revision && matches!(task, Snapshot::Open(_)) == *open
        });
        let found = store.body(&Scope::AnyTask, *id).await;
        if !same || found.as_ref().ok() != Some(body) {
            differences += 1;
        }
    }
    assert!(differences <= 1, "{differences} tasks are lost or changed");
    match differences {
        0 => OpenOutcome::Whole,
        _ => OpenOutcome::OneValue,
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn truncate(path: PathBuf, length: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

#[tokio::test]
async fn a_changed_log_byte_is_refused_after_a_kill() {
    let (folder, facts) = killed().await;
    let length = fs::metadata(folder.file("tasks.db-wal")).unwrap().len() as usize;
    assert!(length > 20 * 8_192, "{length}");
    // The header, and in each frame: its header, its page, its last byte.
    let frames = (32..length).step_by(8_192 + 24);
    let places = frames.flat_map(|at| [at, at + 9, at + 20, at + 24 + 100, at + 24 + 8_191]);
    let places: Vec<usize> = (0..32).step_by(5).chain(places).collect();
    let mut refused = 0;
    for (n, at) in places.iter().enumerate() {
        // Every frame at one of these places, all places in the first and the last frames.
        if n > 40 && n + 20 < places.len() && n % 7 != 0 {
            continue;
        }
        let opened = open_changed(&folder, &facts, |copy| {
            flip(&copy.file("tasks.db-wal"), *at);
        });
        assert_eq!(opened.await, OpenOutcome::Refused, "byte {at} of {length}");
        refused += 1;
    }
    assert!(refused > 60, "{refused}");
}

#[tokio::test]
async fn a_shortened_log_is_refused_after_a_kill() {
    let (folder, facts) = killed().await;
    let length = fs::metadata(folder.file("tasks.db-wal")).unwrap().len();
    let lengths = (0..40).map(|n| length * n / 40);
    for cut in lengths.chain([31, 32, length - 1]) {
        let opened = open_changed(&folder, &facts, |copy| {
            truncate(copy.file("tasks.db-wal"), cut);
        });
        assert_eq!(opened.await, OpenOutcome::Refused, "{cut} of {length}");
    }
}

#[tokio::test]
async fn a_deleted_log_is_refused_after_a_kill() {
    let (folder, facts) = killed().await;
    for names in [&["tasks.db-wal"][..], &["tasks.db-wal", "tasks.db-shm"][..]] {
        let opened = open_changed(&folder, &facts, |copy| {
            for name in names {
                fs::remove_file(copy.file(name)).unwrap();
            }
        });
        assert_eq!(opened.await, OpenOutcome::Refused);
    }
    // The index of the log is derived from it.
    let opened = open_changed(&folder, &facts, |copy| {
        fs::remove_file(copy.file("tasks.db-shm")).unwrap();
    });
    assert_eq!(opened.await, OpenOutcome::Whole);
    let opened = open_changed(&folder, &facts, |copy| {
        flip(&copy.file("tasks.db-shm"), 17);
    });
    assert_eq!(opened.await, OpenOutcome::Whole);
}

#[tokio::test]
async fn a_changed_file_byte_is_refused_or_changes_one_value() {
    let (folder, facts) = closed().await;
    let length = fs::metadata(folder.path()).unwrap().len() as usize;
    assert_eq!(length % 8_192, 0);
    let mut seen = BTreeMap::<OpenOutcome, u32>::new();
    for page in (0..length).step_by(8_192) {
        // The header of the page, its cells, its last byte.
        for at in [0, 1, 4, 7, 9, 4_000, 8_000, 8_191] {
            let opened = open_changed(&folder, &facts, |copy| {
                flip(&copy.path(), page + at);
            });
            *seen.entry(opened.await).or_default() += 1;
        }
    }
    assert!(seen[&OpenOutcome::Refused] > 10, "{seen:?}");
}

#[tokio::test]
async fn a_file_that_is_cut_is_refused() {
    for (folder, facts) in [closed().await, killed().await] {
        let length = fs::metadata(folder.path()).unwrap().len();
        let lengths = (0..24).map(|n| length * n / 24);
        for cut in lengths.chain([1, 99, 100, length - 8_192, length - 1]) {
            let opened = open_changed(&folder, &facts, |copy| truncate(copy.path(), cut));
            let opened = opened.await;
            // Missing parts of a file may be in its log.
            let whole = folder.file("tasks.db-wal").exists() && opened == OpenOutcome::Whole;
            assert!(whole || opened == OpenOutcome::Refused, "{cut} of {length}");
        }
    }
}

#[tokio::test]
async fn a_log_of_another_store_is_refused() {
    let (folder, facts) = killed().await;
    let (other, _) = killed().await;
    let opened = open_changed(&folder, &facts, |copy| {
        fs::copy(other.file("tasks.db-wal"), copy.file("tasks.db-wal")).unwrap();
        fs::remove_file(copy.file("tasks.db.lock")).unwrap();
    });
    assert_eq!(opened.await, OpenOutcome::Refused);
    let opened = open_changed(&folder, &facts, |copy| {
        fs::copy(other.path(), copy.path()).unwrap();
        fs::remove_file(copy.file("tasks.db.lock")).unwrap();
    });
    assert_eq!(opened.await, OpenOutcome::Refused);
}

#[tokio::test]
async fn a_newer_log_next_to_an_older_file_is_refused() {
    let (old, _) = closed().await;
    let newer = old.copy();
    // Enough to restart the log several times.
    let store = newer.open().await;
    let large = format!("\"{}\"", "x".repeat(100_000));
    for n in 1_000..1_250 {
        let task = fixtures::stored(&store, fixtures::task(n)).await;
        fixtures::ended(&store, &task, fixtures::result(&large)).await;
    }
    let crashed = newer.copy();
    drop(store);
    // The old file is restored, and the newer log stays next to it.
    fs::copy(old.path(), crashed.path()).unwrap();
    for lock in [true, false] {
        if !lock {
            fs::remove_file(crashed.file("tasks.db.lock")).unwrap();
        }
        let before = bytes(&crashed);
        let refused = crashed.refusal().await;
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("tasks.db-wal"), "{refused}");
        assert!(bytes(&crashed) == before, "it is changed");
    }
}

#[tokio::test]
async fn an_older_copy_of_a_killed_store_is_incomplete() {
    let (old, facts) = closed().await;
    let newer = old.copy();
    let store = newer.open().await;
    fixtures::stored_all(&store, 1_000..1_010).await;
    let crashed = newer.copy();
    drop(store);
    fs::copy(old.path(), crashed.path()).unwrap();
    fs::remove_file(crashed.file("tasks.db-wal")).unwrap();
    let before = bytes(&crashed);
    for _ in 0..2 {
        let refused = crashed.refusal().await;
        assert!(matches!(refused, OpenError::Incomplete { .. }), "{refused}");
        assert!(refused.to_string().contains("tasks.db.lock"), "{refused}");
        assert!(bytes(&crashed) == before, "it is changed");
    }
    // An operator can use it on purpose.
    fs::remove_file(crashed.file("tasks.db.lock")).unwrap();
    let store = Sqlite::open(crashed.path(), SqliteOptions::default()).await;
    assert_eq!(super::damage::facts(&store.unwrap()).await.unwrap(), facts);
}

#[tokio::test]
async fn a_killed_store_without_its_file_starts_empty() {
    let (folder, _) = killed().await;
    let log = fs::read(folder.file("tasks.db-wal")).unwrap();
    fs::remove_file(folder.path()).unwrap();
    let store = folder.open().await;
    assert_eq!(fixtures::listed(&store, &fixtures::ada(), 99).await, []);
    let usage = store.usage(&fixtures::ada()).await.unwrap();
    assert_eq!(usage.retained, 0);
    // The log is not lost, because an operator may need it.
    assert!(fs::read(folder.file("tasks.db-wal.orphan-1")).unwrap() == log);
    fixtures::stored(&store, fixtures::task(1)).await;
    drop(store);
    let store = folder.open().await;
    assert_eq!(
        fixtures::listed(&store, &fixtures::ada(), 99).await.len(),
        1
    );
}

#[tokio::test]
async fn an_empty_file_is_refused() {
    let folder = StoreFolder::new();
    fs::write(folder.path(), "").unwrap();
    let refused = folder.refusal().await.to_string();
    assert!(refused.contains("empty"), "{refused}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"");
}

#[tokio::test]
async fn a_store_read_by_sqlite3_after_a_kill_opens() {
    let (folder, facts) = killed().await;
    // Another program that closes the file last moves the log into it.
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    let count: u32 = other
        .query_row("SELECT count(*) FROM tasks", (), |row| row.get(0))
        .unwrap();
    assert_eq!(count, 40);
    drop(other);
    assert!(!folder.file("tasks.db-wal").exists());
    let store = Sqlite::open(folder.path(), SqliteOptions::default()).await;
    assert_eq!(super::damage::facts(&store.unwrap()).await.unwrap(), facts);
}

#[tokio::test]
async fn two_torn_transactions_after_power_losses_are_not_damage() {
    let (folder, _) = killed().await;
    let log = folder.file("tasks.db-wal");
    let torn = last_transaction(&fs::read(&log).unwrap());
    flip(&log, torn);
    // After a power loss its record may be older.
    fs::remove_file(folder.file("tasks.db.lock")).unwrap();
    // The torn transaction was not synced, so it was not acknowledged.
    let _store = folder.open().await;

    let again = folder.copy();
    fs::remove_file(again.file("tasks.db.lock")).unwrap();
    let log = again.file("tasks.db-wal");
    let length = fs::metadata(&log).unwrap().len() as usize;
    // The transaction of the second process is where the torn one was, or the last one.
    flip(&log, torn.min(length - 100));
    again.open().await;
}

/// The offset of a byte in the first frame of the last transaction of a log, which has several
/// frames.
fn last_transaction(log: &[u8]) -> usize {
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let frame = 24 + number(8) as usize;
    let starts = (32..=log.len() - frame).step_by(frame);
    let ends = starts.filter(|at| number(at + 4) != 0);
    let ends: Vec<_> = ends.collect();
    let [.., before, last] = ends[..] else {
        panic!("a log with transactions");
    };
    assert!(last - before > frame, "the last transaction has one frame");
    before + frame + 24 + 50
}
