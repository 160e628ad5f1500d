//! The log next to the file stays short, however much is written and read.

use std::sync::Arc;

use outlast_engine::Store;
use outlast_engine::laws::fixtures;
use outlast_store::{Durability, SqliteOptions};

use crate::harness::StoreFolder;

const MIB: u64 = 1 << 20;

/// Ends `count` tasks with 100 KB each.
async fn write(store: &Arc<dyn Store>, from: u64, count: u64) {
    let large = format!("\"{}\"", "x".repeat(100_000));
    for n in from..from + count {
        let task = fixtures::stored(store, fixtures::task(n)).await;
        fixtures::ended(store, &task, fixtures::result(&large)).await;
    }
}

fn quick() -> SqliteOptions {
    SqliteOptions::default().with_durability(Durability::Process)
}

#[tokio::test]
async fn the_log_is_moved_into_the_file() {
    let folder = StoreFolder::new();
    let store = folder.open_with(quick()).await;
    write(&store, 0, 800).await;
    let log = folder.file("tasks.db-wal").metadata().unwrap().len();
    assert!(log < 40 * MIB, "{log} bytes of about 90 MB are in the log");
    let file = folder.path().metadata().unwrap().len();
    assert!(file > 60 * MIB, "{file} bytes are in the file");
    drop(store);
    let store = folder.open_with(quick()).await;
    let body = fixtures::body(&store, fixtures::id(799)).await;
    assert_eq!(body.map(|body| body.size()), Some(100_002));
}

#[tokio::test]
async fn a_reader_delays_the_checkpoint_only_while_it_reads() {
    let folder = StoreFolder::new();
    let store = folder.open_with(quick()).await;
    write(&store, 0, 10).await;
    let reader = rusqlite::Connection::open(folder.path()).unwrap();
    let count = |reader: &rusqlite::Connection| -> u32 {
        let sql = "SELECT count(*) FROM tasks";
        reader.query_row(sql, (), |row| row.get(0)).unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(&reader), 10);
    write(&store, 10, 300).await;
    assert_eq!(count(&reader), 10, "what it saw when it began");
    reader.execute_batch("COMMIT").unwrap();
    let held_up = folder.file("tasks.db-wal").metadata().unwrap().len();
    assert!(held_up > 25 * MIB, "{held_up}");

    write(&store, 310, 800).await;
    let log = folder.file("tasks.db-wal").metadata().unwrap().len();
    assert!(log < held_up + 40 * MIB, "{log} bytes after {held_up}");
    assert_eq!(count(&reader), 1_110);
}
