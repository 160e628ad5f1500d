//! The store file: private, never overwritten, refused with a reason.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use outlast_engine::laws::fixtures;
use outlast_store::{OpenError, SqliteOptions};

use crate::harness::StoreFolder;

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    let mode = |name: &str| {
        let found = fs::metadata(folder.file(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    for name in ["", "-wal", "-shm", ".lock", ".reserve"] {
        assert_eq!(mode(&format!("tasks.db{name}")), 0o600, "{name}");
    }
    drop(store);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let _store = folder.open().await;
    assert_eq!(mode("tasks.db"), 0o600, "a file that others could read");
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    store.close().await.unwrap();
    assert!(!folder.file("tasks.db-wal").exists());
    assert!(!folder.file("tasks.db-shm").exists());
    assert_eq!(folder.query::<u32>("SELECT count(*) FROM tasks"), 1);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_not_changed() {
    let folder = StoreFolder::new();
    for bytes in [&b"Dear diary"[..], &[0; 8192], b"SQLite format 3\0"] {
        fs::write(folder.path(), bytes).unwrap();
        let refused = folder.refusal().await.to_string();
        assert!(refused.contains("tasks.db"), "{refused}");
        assert_eq!(fs::read(folder.path()).unwrap(), bytes);
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_not_changed() {
    let folder = StoreFolder::new();
    let other = rusqlite::Connection::open(folder.path()).unwrap();
    other
        .execute_batch("CREATE TABLE songs (title TEXT)")
        .unwrap();
    drop(other);
    let before = fs::read(folder.path()).unwrap();
    let refused = folder.refusal().await;
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    assert!(refused.to_string().contains("another program"), "{refused}");
    assert_eq!(fs::read(folder.path()).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_not_changed() {
    let folder = StoreFolder::new();
    folder.open().await.close().await.unwrap();
    let newer = rusqlite::Connection::open(folder.path()).unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    let before = fs::read(folder.path()).unwrap();
    let refused = folder.refusal().await;
    assert!(
        matches!(
            refused,
            OpenError::Newer {
                found: 7,
                known: 2,
                ..
            }
        ),
        "{refused}"
    );
    let words = refused.to_string();
    assert!(
        words.contains("version 7") && words.contains("up to 2"),
        "{words}"
    );
    assert_eq!(fs::read(folder.path()).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_file_is_not_changed() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored_all(&store, 0..200).await;
    store.close().await.unwrap();
    let mut bytes = fs::read(folder.path()).unwrap();
    bytes[3 * 8192..].fill(0xa5);
    fs::write(folder.path(), &bytes).unwrap();
    let refused = folder.refusal().await;
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert_eq!(fs::read(folder.path()).unwrap(), bytes);
}

#[tokio::test]
async fn an_invalid_row_is_named() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;
    store.close().await.unwrap();
    let file = rusqlite::Connection::open(folder.path()).unwrap();
    file.execute("UPDATE opened SET state = 'dreaming'", ())
        .unwrap();
    drop(file);
    let refused = folder.refusal().await;
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    let words = refused.to_string();
    assert!(
        words.contains(&task.id.to_string()) && words.contains("dreaming"),
        "{words}"
    );
}

#[tokio::test]
async fn a_damaged_ended_task_is_named_when_read() {
    let folder = StoreFolder::new();
    let forgetful = SqliteOptions::default().with_body_cache_bytes(0);
    let store = folder.open_with(forgetful).await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;
    fixtures::ended(&store, &task, fixtures::result("{}")).await;
    let file = rusqlite::Connection::open(folder.path()).unwrap();
    file.execute("UPDATE ended SET body = '{', timeline = '?'", ())
        .unwrap();
    let scope = outlast_engine::Scope::AnyTask;
    for refused in [
        store.body(&scope, task.id).await.unwrap_err(),
        store.load(&scope, task.id).await.unwrap_err(),
    ] {
        assert!(
            matches!(refused, outlast_engine::StoreError::Corrupt(_)),
            "{refused}"
        );
        assert!(
            refused.to_string().contains(&task.id.to_string()),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_path_in_a_missing_folder_is_refused() {
    let folder = StoreFolder::new();
    let path = folder.file("no/such/folder/tasks.db");
    let refused = outlast_store::Sqlite::open(path, Default::default()).await;
    assert!(matches!(refused, Err(OpenError::Io { .. })));
}

#[test]
fn a_store_opens_without_a_runtime() {
    let folder = StoreFolder::new();
    for _ in 0..2 {
        outlast_store::Sqlite::open_blocking(folder.path(), Default::default()).unwrap();
    }
}
