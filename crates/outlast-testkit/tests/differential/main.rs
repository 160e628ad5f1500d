//! Two stores get the same operations, step by step, and must return the same.
//!
//! Scripts are random; commands go through [`Task::apply`](outlast_engine::Task::apply), so that
//! only what can happen to a task is stored. Positions and the order within a sweep are a store's
//! own affair and are not compared.

mod harness;
mod script;

use std::sync::Arc;

use outlast_engine::{MemoryStore, Store};
use outlast_store::{Durability, Postgres, PostgresUrl, Sqlite, SqliteOptions};
use outlast_testkit::{ModelStore, PostgresServer};
use proptest::prelude::*;
use tempfile::TempDir;

use harness::{Harness, TestedStore};
use script::{Step, script};

/// A store in this process, which has nothing to reopen.
struct InProcess(Arc<dyn Store>);

#[async_trait::async_trait]
impl TestedStore for InProcess {
    fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    async fn reopen(&mut self) {}
}

/// A store in a file.
struct InFile {
    store: Arc<dyn Store>,
    folder: TempDir,
}

impl InFile {
    async fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let store = open(&folder).await;
        Self { store, folder }
    }
}

#[async_trait::async_trait]
impl TestedStore for InFile {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store.close().await.expect("an open store is closed");
        self.store = open(&self.folder).await;
    }
}

/// A store in a database.
struct InDatabase {
    store: Arc<dyn Store>,
    url: PostgresUrl,
}

impl InDatabase {
    async fn new() -> Self {
        let url = PostgresUrl::new(PostgresServer::shared().fresh_url());
        let store = open_database(&url).await;
        Self { store, url }
    }
}

#[async_trait::async_trait]
impl TestedStore for InDatabase {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store.close().await.expect("an open store is closed");
        self.store = open_database(&self.url).await;
    }
}

async fn open_database(url: &PostgresUrl) -> Arc<dyn Store> {
    let store = Postgres::open(url).await;
    Arc::new(store.expect("the database runs"))
}

async fn open(folder: &TempDir) -> Arc<dyn Store> {
    let options = SqliteOptions::default()
        // What is compared is what is said, not what survives the loss of power.
        .with_durability(Durability::Process);
    let store = Sqlite::open(folder.path().join("tasks.db"), options).await;
    Arc::new(store.expect("the file can be opened"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn memory_does_what_the_model_does(script in script()) {
        let model = InProcess(Arc::new(ModelStore::new()));
        let memory = InProcess(Arc::new(MemoryStore::new()));
        perform(model, async { memory }, &script)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_memory_does(script in script()) {
        let memory = InProcess(Arc::new(MemoryStore::new()));
        perform(memory, InFile::new(), &script)?;
    }

    #[test]
    fn postgres_does_what_memory_does(script in script()) {
        let memory = InProcess(Arc::new(MemoryStore::new()));
        perform(memory, InDatabase::new(), &script)?;
    }
}

/// Plays a script to both and compares what they say.
fn perform(
    expected: impl TestedStore,
    tested: impl Future<Output = impl TestedStore>,
    script: &[Step],
) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let mut expected = Harness::new(expected);
        let mut tested = Harness::new(tested.await);
        for (n, step) in script.iter().enumerate() {
            let (output, expected_output) = (tested.run(step).await, expected.run(step).await);
            prop_assert_eq!(output, expected_output, "step {} was {:?}", n, step);
        }
        let (output, expected_output) = (tested.audit().await, expected.audit().await);
        prop_assert_eq!(output, expected_output, "at the end");
        Ok(())
    })
}
