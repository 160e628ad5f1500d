//! The [`Store`] trait for one file: writes go to the writer, reads to memory or to a reader.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use async_trait::async_trait;
use outlast_engine::engine::Progress;
use outlast_engine::index::Index;
use outlast_engine::store::{
    DueTasks, Filter, Health, Insert, InsertResult, NodeStatus, Page, Position, Reason, Record,
    RecordKey, RecordSwap, RecordWrite, Replace, Snapshot, StoreEvents, StoreFuture, Usage,
};
use outlast_engine::{
    Committed, Ending, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::body::{self, MissedRow};
use super::body_cache::BodyCache;
use super::file_fault::FileFault;
use super::health::HealthState;
use super::readers::Readers;
use super::records;
use super::row::RowId;
use super::writer::{Operation, Removal, ReplySender};

/// Stores tasks in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Operation>,
    readers: Readers,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The state that callers and the writer share. Only the writer changes the index.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) index: Index<RowId>,
    pub(super) bodies: BodyCache,
    pub(super) health: HealthState,
    /// When the next record expires, in milliseconds, or the maximum if none does.
    pub(super) record_expiry: AtomicU64,
}

impl Shared {
    /// Sets when the next record expires.
    pub(super) fn set_record_expiry(&self, at: Option<Timestamp>) {
        let at = at.map_or(u64::MAX, |at| at.0);
        self.record_expiry.store(at, Ordering::Relaxed);
    }

    /// Whether a record has expired and this caller is the first to find it.
    fn claims_expiry(&self, now: Timestamp) -> bool {
        let at = self.record_expiry.load(Ordering::Relaxed);
        let expiry = &self.record_expiry;
        now.0 >= at
            && expiry
                .compare_exchange(at, u64::MAX, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl Sqlite {
    pub(super) fn new(
        shared: Arc<Shared>,
        queue: mpsc::Sender<Operation>,
        readers: Readers,
        writer: JoinHandle<()>,
    ) -> Self {
        Self {
            shared,
            queue,
            readers,
            writer: Mutex::new(Some(writer)),
        }
    }

    fn usable(&self) -> Result<(), StoreError> {
        match *self.shared.health.watch().borrow() {
            Health::Closed => Err(closed()),
            _ => Ok(()),
        }
    }

    /// Queues an operation. The reply arrives when it is done.
    fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(ReplySender<T>) -> Operation,
    ) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        let given = self
            .usable()
            .and_then(|()| self.queue.send(operation(reply)).map_err(|_| closed()));
        match given {
            Ok(()) => StoreFuture::channel(answer),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    /// Returns the body of a task, from the cache or from the file.
    async fn find_body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        let mut missing = MissedRow::default();
        loop {
            let row = match self.shared.index.find(scope, id) {
                None | Some((Snapshot::Open(_), _)) => return Ok(None),
                Some((Snapshot::Ended(summary), _)) if summary.ending == Ending::Cancelled => {
                    return Ok(None);
                }
                Some((Snapshot::Ended(_), row)) => row,
            };
            if let Some(body) = self.shared.bodies.get(row) {
                return Ok(Some(body));
            }
            let found = self.readers.read(move |file| body::body(file, row, id));
            if let Some(body) = found.await? {
                let cached = body.iter().map(|body| (row, body.clone()));
                self.shared.bodies.add(cached);
                return Ok(body);
            }
            missing.retry(id, row, self.shared.health.watch()).await?;
        }
    }
}

#[async_trait]
impl Store for Sqlite {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        self.write(|reply| Operation::Insert(insert, reply))
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        self.write(|reply| Operation::Replace(replace, reply))
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.write(|reply| Operation::Remove(Removal::new(node, tasks, reply)))
            .await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::ready(self.usable().map(|()| self.shared.index.get(scope, id)))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.usable()?;
        let mut missing = MissedRow::default();
        loop {
            let row = match self.shared.index.find(scope, id) {
                None => return Ok(None),
                Some((Snapshot::Open(task), _)) => return Ok(Some(task)),
                Some((Snapshot::Ended(_), row)) => row,
            };
            let found = self.readers.read(move |file| body::task(file, row, id));
            if let Some(task) = found.await? {
                return Ok(Some(Committed::confirmed_by_backend(task)));
            }
            missing.retry(id, row, self.shared.health.watch()).await?;
        }
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        if let Err(error) = self.usable() {
            return StoreFuture::ready(Err(error));
        }
        // Most bodies are fetched soon after the end and are in the cache.
        let row = self.shared.index.cold(scope, id, |row| Some(*row));
        match row.and_then(|row| self.shared.bodies.get(row)) {
            Some(body) => StoreFuture::ready(Ok(Some(body))),
            None => StoreFuture::boxed(self.find_body(scope, id)),
        }
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        Ok(self.shared.index.page(owner, after, limit))
    }

    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        Ok(self.shared.index.search(filter, after, limit))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        self.usable()?;
        if self.shared.claims_expiry(now) {
            // Nothing waits for it, because expired records are already invisible.
            let _ = self.queue.send(Operation::ExpireRecords(now));
        }
        Ok(self.shared.index.due(now, limit))
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.usable()?;
        Ok(self.shared.index.claim(node, limit))
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.usable()?;
        Ok(self.shared.index.usage(owner))
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.write(|reply| Operation::Records(records, reply)).await
    }

    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError> {
        self.write(|reply| Operation::SwapRecord(swap, now, reply))
            .await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.usable()?;
        let key = key.clone();
        self.readers
            .read(move |file| records::one(file, &key, now).map_err(FileFault::from))
            .await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.usable()?;
        let (kind, owner) = (kind.to_owned(), owner.cloned());
        self.readers
            .read(move |file| {
                records::of_kind(file, &kind, owner.as_ref(), now).map_err(FileFault::from)
            })
            .await
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        self.usable()?;
        Ok(self.shared.index.join(node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.shared.index.leave(node);
        Ok(())
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        self.usable()?;
        self.shared.index.publish_address(node, address);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.usable()?;
        Ok(self.shared.index.nodes())
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        self.shared.index.publish_progress(node, id, progress);
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.watch().subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        if self.usable().is_err() {
            return Ok(());
        }
        self.readers.stop();
        self.write(Operation::Close).await
    }
}

impl Drop for Sqlite {
    /// Waits until the writer has closed the file, so that it can be opened again immediately.
    fn drop(&mut self) {
        self.readers.stop();
        let (reply, _) = oneshot::channel();
        let _ = self.queue.send(Operation::Close(reply));
        let writer = self.writer.get_mut();
        if let Some(writer) = writer.take() {
            let _ = writer.join();
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable(Reason::new("it was closed"))
}
