//! P12: files that are deleted or replaced under a running store are detected, and the store goes
//! down.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::laws::fixtures;
use outlast_engine::store::Health;
use outlast_engine::{Store, StoreError};

use crate::harness::{StoreFolder, recovered};

async fn unavailable_text(store: &Arc<dyn Store>) -> String {
    let mut health = store.health();
    let down = health.wait_for(|health| matches!(health, Health::Down(_)));
    let down = tokio::time::timeout(Duration::from_secs(20), down).await;
    match &*down.expect("it is detected in time").unwrap() {
        Health::Down(reason) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn refusal_text(store: &Arc<dyn Store>, n: u64) -> String {
    let insert = store.insert(fixtures::insertion(fixtures::task(n))).await;
    match insert {
        Err(StoreError::Unavailable(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

const FILES: [&str; 4] = ["tasks.db", "tasks.db-wal", "tasks.db-shm", "tasks.db.lock"];

#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_is_deleted() {
    for name in FILES {
        let folder = StoreFolder::new();
        let store = folder.open().await;
        fixtures::stored(&store, fixtures::task(1)).await;
        fs::remove_file(folder.file(name)).unwrap();
        let reason = refusal_text(&store, 2).await;
        assert!(reason.contains(name), "{reason}");
        assert!(reason.contains("deleted"), "{reason}");
        assert!(unavailable_text(&store).await.contains(name));
        // No file is created in its place, neither by recovery nor at the end.
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(refusal_text(&store, 3).await.contains("deleted"));
        drop(store);
        assert!(!folder.file(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn an_idle_store_notices_a_deleted_file() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    fs::remove_file(folder.path()).unwrap();
    assert!(unavailable_text(&store).await.contains("tasks.db"));
}

#[tokio::test]
async fn a_replaced_file_is_not_changed() {
    let other = StoreFolder::new();
    let store = other.open().await;
    fixtures::stored(&store, fixtures::task(7)).await;
    store.close().await.unwrap();

    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    let aside = folder.file("aside");
    fs::rename(folder.path(), &aside).unwrap();
    fs::copy(other.path(), folder.path()).unwrap();
    let reason = refusal_text(&store, 2).await;
    assert!(reason.contains("replaced"), "{reason}");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(
        fs::read(folder.path()).unwrap(),
        fs::read(other.path()).unwrap()
    );

    // When the file is back, the store recovers.
    fs::rename(&aside, folder.path()).unwrap();
    recovered(&store).await;
    fixtures::stored(&store, fixtures::task(3)).await;
    drop(store);
    let store = folder.open().await;
    let found = fixtures::listed(&store, &fixtures::ada(), 9).await;
    assert_eq!(found, [fixtures::id(3), fixtures::id(1)]);
}

#[tokio::test]
async fn a_replaced_file_is_not_changed_when_the_store_closes() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    fixtures::stored(&store, fixtures::task(1)).await;
    for name in ["tasks.db", "tasks.db-wal"] {
        fs::rename(folder.file(name), folder.file(&format!("{name}.aside"))).unwrap();
        fs::write(folder.file(name), "another file").unwrap();
    }
    store.close().await.unwrap();
    drop(store);
    for name in ["tasks.db", "tasks.db-wal"] {
        assert_eq!(fs::read(folder.file(name)).unwrap(), b"another file");
    }
}
