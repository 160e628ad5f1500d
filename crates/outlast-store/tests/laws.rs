//! Every law of stores, against SQLite in a folder of its own.

use outlast_store::{Sqlite, SqliteOptions};

outlast_engine::store_laws!(async {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tasks.db");
    let store = Sqlite::open(path, SqliteOptions::default()).await;
    (store.expect("a new store opens"), folder)
});
