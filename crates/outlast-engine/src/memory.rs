//! The memory store: exact semantics, no durability. Tests compare other stores with it.

mod records;

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::watch;

use crate::engine::Progress;
use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::index::Index;
use crate::owner::Owner;
use crate::runtime::Mutex;
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::store::{
    Committed, DueTasks, Filter, Health, Insert, InsertResult, NodeStatus, Page, Position, Reason,
    Record, RecordKey, RecordSwap, RecordWrite, Replace, Snapshot, Store, StoreError, StoreEvents,
    StoreFuture, Usage,
};
use crate::task::Task;

use records::Records;

/// Stores tasks until the process ends.
#[derive(Debug)]
pub struct MemoryStore {
    index: Index<Cold>,
    records: Records,
    /// Serialises insertions with the same request key: a second one finds the task of the first.
    inserting: [Mutex<()>; 16],
    health: watch::Sender<Health>,
    /// Whether `health` is `Closed`. An atomic, because every operation reads it.
    closed: AtomicBool,
}

/// An ended task and its body; `None` for an open task, which the index holds itself.
type Cold = Option<(Arc<Task>, Option<Raw>)>;

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            index: Index::new(Position(1)),
            records: Records::default(),
            inserting: Default::default(),
            health: watch::Sender::new(Health::Ready),
            closed: AtomicBool::new(false),
        }
    }

    fn usable(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            Err(StoreError::Unavailable(Reason::new("it was closed")))
        } else {
            Ok(())
        }
    }

    fn add(&self, insert: Insert) -> Result<InsertResult, StoreError> {
        self.usable()?;
        let _one_at_a_time = insert.task.request_key.as_deref().map(|key| {
            let slot = key.bytes().fold(0, |sum, byte| sum ^ usize::from(byte));
            let lock = &self.inserting[slot % self.inserting.len()];
            lock.lock()
        });
        let inserted = self.index.insert(insert.task, &insert.quota, None)?;
        if matches!(inserted, InsertResult::New(_)) {
            self.records.write(insert.records);
        }
        Ok(inserted)
    }

    fn change(&self, replace: Replace) -> Result<Committed<Task>, StoreError> {
        self.usable()?;
        let Replace {
            node,
            expected,
            next,
            body,
            records,
        } = replace;
        let replaced = self.index.replace(node, expected, next, |task, before| {
            let ended = task.state.ending().is_some();
            // A change after the end, such as an extension, does not remove the body.
            let body = body.or_else(|| before.as_ref().and_then(|cold| cold.1.clone()));
            ended.then(|| (task.clone(), body))
        })?;
        self.records.write(records);
        Ok(replaced.now)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        StoreFuture::ready(self.add(insert))
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        StoreFuture::ready(self.change(replace))
    }

    async fn remove(
        &self,
        node: NodeId,
        mut tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.usable()?;
        tasks.retain(|(id, revision)| self.index.remove(node, *id, *revision).is_some());
        Ok(tasks.into_iter().map(|(id, _)| id).collect())
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::ready(self.usable().map(|()| self.index.get(scope, id)))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.usable()?;
        Ok(self
            .index
            .find(scope, id)
            .and_then(|(snapshot, cold)| match snapshot {
                Snapshot::Open(task) => Some(task),
                Snapshot::Ended(_) => cold.map(|(task, _)| Committed::confirmed_by_backend(task)),
            }))
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        let body = |cold: &Cold| cold.as_ref()?.1.clone();
        StoreFuture::ready(self.usable().map(|()| self.index.cold(scope, id, body)))
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        Ok(self.index.page(owner, after, limit))
    }

    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        Ok(self.index.search(filter, after, limit))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        self.usable()?;
        self.records.delete_expired(now, limit);
        Ok(self.index.due(now, limit))
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.usable()?;
        Ok(self.index.claim(node, limit))
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.usable()?;
        Ok(self.index.usage(owner))
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.usable()?;
        self.records.write(records);
        Ok(())
    }

    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError> {
        self.usable()?;
        Ok(self.records.swap(swap, now))
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.usable()?;
        Ok(self.records.get(key, now))
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.usable()?;
        Ok(self.records.of_kind(kind, owner, now))
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        self.usable()?;
        Ok(self.index.join(node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.index.leave(node);
        Ok(())
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        self.usable()?;
        self.index.publish_address(node, address);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.usable()?;
        Ok(self.index.nodes())
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        self.index.publish_progress(node, id, progress);
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.closed.store(true, Ordering::Release);
        self.health.send_replace(Health::Closed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    crate::store_laws!(async { crate::memory::MemoryStore::new() });
}
