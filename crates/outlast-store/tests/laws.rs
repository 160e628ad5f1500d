//! Every law of stores, for SQLite in a temporary folder.

use outlast_store::{Durability, Sqlite, SqliteOptions};
use tempfile::TempDir;

mod as_opened_by_default {
    outlast_engine::store_laws!(crate::opened(crate::SqliteOptions::default()));
}

mod with_nothing_remembered {
    outlast_engine::store_laws!(crate::opened(
        crate::SqliteOptions::default()
            .with_durability(crate::Durability::Process)
            .with_body_cache_bytes(0)
            .with_readers(1)
    ));
}

async fn opened(options: SqliteOptions) -> (Sqlite, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Sqlite::open(folder.path().join("tasks.db"), options).await;
    (store.expect("a new store opens"), folder)
}
