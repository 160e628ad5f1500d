//! The [`Store`] trait over one file: writes go to the writer, reads to memory or to a reader.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use async_trait::async_trait;
use outlast_engine::index::Index;
use outlast_engine::store::{
    Due, Feed, Health, Insert, Inserted, Page, Position, Reason, Record, RecordKey, RecordWrite,
    Replace, Snapshot, StoreFuture, Usage,
};
use outlast_engine::{
    Committed, Ending, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::{oneshot, watch};

use super::body::{self, Missing};
use super::condition::Condition;
use super::fault::Fault;
use super::readers::Readers;
use super::recent::Recent;
use super::records;
use super::row::{self, RowId};
use super::unwritten::Unwritten;
use super::writer::{Op, Removal, Reply};

/// Keeps tasks in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Op>,
    readers: Readers,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What callers and the writer both see. Only the writer changes the index.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) index: Index<RowId>,
    pub(super) recent: Recent,
    /// What is promised and not in the tables yet.
    pub(super) unwritten: Unwritten,
    pub(super) condition: Condition,
    /// The last frame of the ledger that the tables have on the disk.
    pub(super) filled: AtomicU64,
    /// How many pages of the file are used, where there is a limit.
    pub(super) used: AtomicU64,
    /// When the next record expires, in milliseconds; the end of time if none does.
    pub(super) record_expiry: AtomicU64,
}

impl Shared {
    /// Notes when the next record expires.
    pub(super) fn expect_expiry(&self, at: Option<Timestamp>) {
        let at = at.map_or(u64::MAX, |at| at.0);
        self.record_expiry.store(at, Ordering::Relaxed);
    }

    /// Notes that a record expires then.
    pub(super) fn expect_expiry_by(&self, at: Timestamp) {
        self.record_expiry.fetch_min(at.0, Ordering::Relaxed);
    }

    /// Whether a record has expired and the caller is the one to say so.
    fn takes_expiry(&self, now: Timestamp) -> bool {
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
        queue: mpsc::Sender<Op>,
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
        match *self.shared.condition.health().borrow() {
            Health::Closed => Err(closed()),
            _ => Ok(()),
        }
    }

    /// Lets the writer do something, and tells when it has.
    fn write<T: Send + 'static>(&self, op: impl FnOnce(Reply<T>) -> Op) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        let given = self
            .usable()
            .and_then(|()| self.queue.send(op(reply)).map_err(|_| closed()));
        match given {
            Ok(()) => StoreFuture::channel(answer),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    /// Waits until the tables have everything that was promised before: what `sqlite3` shows, and what a backup of the
    /// file holds. They follow within a tenth of a second by themselves.
    pub async fn settle(&self) -> Result<(), StoreError> {
        self.write(Op::Settle).await
    }

    /// The body of a task that the tables do not have yet.
    fn unwritten_body(&self, id: TaskId) -> Result<Option<Raw>, StoreError> {
        let change = self.shared.unwritten.change(id);
        let Some(image) = change.and_then(|change| change.image) else {
            return Ok(None);
        };
        row::body(&image.columns()).map_err(|bad| body::fault(bad).error())
    }

    /// The body of a task, from memory if it is at hand.
    async fn find_body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        let mut missing = Missing::default();
        loop {
            let row = match self.shared.index.find(scope, id) {
                None | Some((Snapshot::Open(_), _)) => return Ok(None),
                Some((Snapshot::Ended(brief), _)) if brief.ending == Ending::Cancelled => {
                    return Ok(None);
                }
                Some((Snapshot::Ended(_), row)) => row,
            };
            if let Some(body) = self.shared.recent.get(row) {
                return Ok(Some(body));
            }
            if let Some(body) = self.unwritten_body(id)? {
                return Ok(Some(body));
            }
            let found = self.readers.read(move |file| body::body(file, row, id));
            if let Some(body) = found.await? {
                let recent = body.iter().map(|body| (row, body.clone()));
                self.shared.recent.keep(recent);
                return Ok(body);
            }
            missing
                .again(id, row, self.shared.condition.health())
                .await?;
        }
    }
}

#[async_trait]
impl Store for Sqlite {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, Inserted> {
        self.write(|reply| Op::Insert(insert, reply))
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        self.write(|reply| Op::Replace(replace, reply))
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.write(|reply| Op::Remove(Removal::new(node, tasks, reply)))
            .await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::ready(self.usable().map(|()| self.shared.index.get(scope, id)))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.usable()?;
        let mut missing = Missing::default();
        loop {
            let row = match self.shared.index.find(scope, id) {
                None => return Ok(None),
                Some((Snapshot::Open(task), _)) => return Ok(Some(task)),
                Some((Snapshot::Ended(_), row)) => row,
            };
            let unwritten = self.shared.unwritten.change(id);
            let found = self
                .readers
                .read(move |file| body::newest(file, row, id, unwritten));
            if let Some(task) = found.await? {
                return Ok(Some(Committed::confirmed_by_backend(task)));
            }
            missing
                .again(id, row, self.shared.condition.health())
                .await?;
        }
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        if let Err(error) = self.usable() {
            return StoreFuture::ready(Err(error));
        }
        // Most are asked for soon after the end.
        let row = self.shared.index.cold(scope, id, |row| Some(*row));
        match row.and_then(|row| self.shared.recent.get(row)) {
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

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.usable()?;
        if self.shared.takes_expiry(now) {
            // Nobody waits for it: expired records are invisible already.
            let _ = self.queue.send(Op::Forget(now));
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
        self.write(|reply| Op::Records(records, reply)).await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.usable()?;
        if let Some(known) = self.shared.unwritten.record(key) {
            return Ok(known.filter(|record| record.lives(now)));
        }
        let key = key.clone();
        self.readers
            .read(move |file| records::one(file, &key, now).map_err(Fault::from))
            .await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.usable()?;
        // Before the tables are read: what leaves here is there.
        let unwritten = self.shared.unwritten.records(kind);
        let asked = (kind.to_owned(), owner.cloned());
        let read = self.readers.read(move |file| {
            let (kind, owner) = asked;
            records::of_kind(file, &kind, owner.as_ref(), now).map_err(Fault::from)
        });
        let mut records = read.await?;
        if !unwritten.is_empty() {
            records.retain(|record| !unwritten.contains_key(&record.key));
            let unwritten = unwritten.into_values().flatten();
            let is_asked_for = |record: &Record| {
                record.lives(now) && (owner.is_none() || record.owner.as_ref() == owner)
            };
            records.extend(unwritten.filter(is_asked_for));
            records.sort_by(|one, other| one.key.cmp(&other.key));
        }
        Ok(records)
    }

    async fn join(&self, node: NodeId) -> Result<Feed, StoreError> {
        self.usable()?;
        Ok(self.shared.index.join(node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.shared.index.leave(node);
        Ok(())
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.condition.health().subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        if self.usable().is_err() {
            return Ok(());
        }
        self.readers.stop();
        self.write(Op::Close).await
    }
}

impl Drop for Sqlite {
    /// Waits until the writer has let go of the file, so that it can be opened again at once.
    fn drop(&mut self) {
        self.readers.stop();
        let (reply, _) = oneshot::channel();
        let _ = self.queue.send(Op::Close(reply));
        let writer = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
            let _ = writer.join();
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable(Reason::new("it was closed"))
}
