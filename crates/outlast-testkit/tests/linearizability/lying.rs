//! Stores that break their word, to see that it is noticed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::store::{
    Due, Feed, Health, Insert, Inserted, Page, Position, Record, RecordKey, RecordWrite, Replace,
    Snapshot, StoreFuture, Usage,
};
use outlast_engine::{
    Committed, MemoryStore, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::watch;

/// How a store lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Every look shows the task as it was at the look before.
    OldNews,
    /// A task may end although it has ended.
    TwoEnds,
}

pub(crate) struct Lying {
    inner: Arc<MemoryStore>,
    lie: Lie,
    shown: Mutex<HashMap<TaskId, Snapshot>>,
}

impl Lying {
    pub(crate) fn new(lie: Lie) -> Self {
        Self {
            inner: Arc::new(MemoryStore::new()),
            lie,
            shown: Mutex::default(),
        }
    }
}

#[async_trait]
impl Store for Lying {
    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        if self.lie != Lie::TwoEnds || replace.next.state.ending().is_none() {
            return self.inner.replace(replace);
        }
        let inner = self.inner.clone();
        StoreFuture::boxed(async move {
            // Whoever wants to end it as well has looked by now.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let id = replace.next.id;
            let now = inner.get(&Scope::Anyone, id).await?;
            let expected = now.map_or(replace.expected, |now| now.revision());
            let again = Replace {
                expected,
                ..replace
            };
            inner.replace(again).await
        })
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(async move {
            let now = self.inner.get(scope, id).await?;
            if self.lie != Lie::OldNews {
                return Ok(now);
            }
            let mut shown = self.shown.lock().expect("nobody panics here");
            let before = now.clone().and_then(|now| shown.insert(id, now));
            Ok(before.or(now))
        })
    }

    fn insert(&self, insert: Insert) -> StoreFuture<'static, Inserted> {
        self.inner.insert(insert)
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.inner.remove(node, tasks).await
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.inner.load(scope, id).await
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        self.inner.body(scope, id)
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.inner.page(owner, after, limit).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.inner.due(now, limit).await
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.inner.claim(node, limit).await
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
        self.inner.join(node).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.inner.leave(node).await
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.inner.health()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }
}
