//! The memory store with a point before and after every call at which others may go first, and with
//! failures where a scenario wants them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast_engine::store::{
    Due, Feed, Health, Insert, Inserted, Page, Position, Reason, Record, RecordKey, RecordWrite,
    Replace, Snapshot, StoreFuture, Usage,
};
use outlast_engine::{
    Committed, MemoryStore, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, Timestamp};
use shuttle::future::yield_now;
use shuttle::rand::Rng;
use tokio::sync::watch;

/// The store of a scenario.
#[derive(Clone, Default)]
pub(crate) struct Interleaved {
    inner: Arc<MemoryStore>,
    /// How often each task was stored as ended.
    pub(crate) endings: Arc<Mutex<HashMap<TaskId, usize>>>,
    /// How many writes may still fail, before or after their commit.
    pub(crate) faults: Arc<Mutex<usize>>,
}

impl Interleaved {
    async fn read<T>(&self, read: impl Future<Output = T> + Send) -> T {
        yield_now().await;
        let read = read.await;
        yield_now().await;
        read
    }

    async fn write<T>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        yield_now().await;
        let (before, after) = self.strikes();
        if before {
            return Err(struck());
        }
        let written = write.await;
        yield_now().await;
        match after {
            true => written.and(Err(struck())),
            false => written,
        }
    }

    /// Whether a write fails before or after its commit.
    fn strikes(&self) -> (bool, bool) {
        let mut left = self.faults.lock().unwrap();
        if *left == 0 {
            return (false, false);
        }
        let (before, after) = match shuttle::rand::thread_rng().gen_range(0..4) {
            0 => (true, false),
            1 => (false, true),
            _ => (false, false),
        };
        *left -= usize::from(before || after);
        (before, after)
    }
}

#[async_trait]
impl Store for Interleaved {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, Inserted> {
        let this = self.clone();
        // Nothing is written before its turn.
        StoreFuture::boxed(
            async move { this.write(async { this.inner.insert(insert).await }).await },
        )
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        let this = self.clone();
        StoreFuture::boxed(async move {
            let stored = async {
                let stored = this.inner.replace(replace).await?;
                if stored.state.ending().is_some() {
                    *this.endings.lock().unwrap().entry(stored.id).or_default() += 1;
                }
                Ok(stored)
            };
            this.write(stored).await
        })
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.write(self.inner.remove(node, tasks)).await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(self.read(async move { self.inner.get(scope, id).await }))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.read(self.inner.load(scope, id)).await
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        StoreFuture::boxed(self.read(async move { self.inner.body(scope, id).await }))
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.read(self.inner.page(owner, after, limit)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.read(self.inner.due(now, limit)).await
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.read(self.inner.claim(node, limit)).await
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.inner.usage(owner).await
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.inner.write_records(records).await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.inner.record(key, now).await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.inner.records(kind, owner, now).await
    }

    async fn join(&self, node: NodeId) -> Result<Feed, StoreError> {
        self.read(self.inner.join(node)).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.read(self.inner.leave(node)).await
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.inner.health()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }
}

fn struck() -> StoreError {
    StoreError::Unavailable(Reason::new("a fault struck it"))
}
