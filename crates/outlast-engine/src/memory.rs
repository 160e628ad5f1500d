//! The reference store: no durability, exact semantics. Other stores are compared with it.

mod records;

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::watch;

use crate::id::{NodeId, Owner, Revision, Scope, TaskId};
use crate::index::{Index, Room};
use crate::runtime::Mutex;
use crate::store::{
    Committed, Due, Feed, Health, Insert, Inserted, Page, Position, Reason, Record, RecordKey,
    RecordWrite, Replace, Snapshot, Store, StoreError, Usage,
};
use crate::task::Task;

use records::Records;

/// Keeps tasks for the life of the process.
#[derive(Debug)]
pub struct MemoryStore {
    index: Index<Cold>,
    records: Records,
    /// One insertion at a time under one request key or id: whoever finds it taken finds the task.
    inserting: [Mutex<()>; 16],
    health: watch::Sender<Health>,
}

/// What an ended task leaves behind: itself and its body. An open one hangs nothing on the index.
type Cold = Option<Arc<(Arc<Task>, Option<Raw>)>>;

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            index: Index::new(Position(1)),
            records: Records::default(),
            inserting: Default::default(),
            health: watch::Sender::new(Health::Ready),
        }
    }

    fn usable(&self) -> Result<(), StoreError> {
        match *self.health.borrow() {
            Health::Closed => Err(StoreError::Unavailable(Reason::new("it was closed"))),
            _ => Ok(()),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        self.usable()?;
        let place = match &insert.task.request_key {
            Some(key) => key.bytes().fold(0, |sum, byte| sum ^ usize::from(byte)),
            None => insert.task.id.bits() as usize,
        };
        let lock = &self.inserting[place % self.inserting.len()];
        let _one_at_a_time = lock.lock().unwrap_or_else(PoisonError::into_inner);
        match self.index.reserve(&insert.task, &insert.quota)? {
            Room::Known(id) => Ok(Inserted::Known(id)),
            Room::Held(position) => {
                self.records.write(insert.records);
                Ok(Inserted::New(self.index.admit(insert.task, position, None)))
            }
        }
    }

    async fn replace(&self, replace: Replace) -> Result<Committed<Task>, StoreError> {
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
            // A change after the end, such as an extension, keeps the body.
            let body = body.or_else(|| before.as_ref().and_then(|cold| cold.1.clone()));
            ended.then(|| Arc::new((task.clone(), body)))
        })?;
        self.records.write(records);
        Ok(replaced.now)
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

    async fn get(&self, scope: &Scope, id: TaskId) -> Result<Option<Snapshot>, StoreError> {
        self.usable()?;
        Ok(self.index.get(scope, id))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.usable()?;
        Ok(self
            .index
            .find(scope, id)
            .and_then(|(snapshot, cold)| match snapshot {
                Snapshot::Open(task) => Some(task),
                Snapshot::Ended(_) => {
                    cold.map(|cold| Committed::confirmed_by_backend(cold.0.clone()))
                }
            }))
    }

    async fn body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        self.usable()?;
        Ok(self
            .index
            .find(scope, id)
            .and_then(|(_, cold)| cold?.1.clone()))
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

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.usable()?;
        self.records.forget_expired(now, limit);
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

    async fn join(&self, node: NodeId) -> Result<Feed, StoreError> {
        self.usable()?;
        Ok(self.index.join(node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.index.leave(node);
        Ok(())
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.health.send_replace(Health::Closed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    crate::store_laws!(async { crate::memory::MemoryStore::new() });
}
