//! The [`Store`] trait on a database: writes go to the writer, everything else is one statement.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use outlast_engine::engine::Progress;
use outlast_engine::store::{
    DueTasks, Filter, Health, Insert, InsertResult, NodeStatus, Page, Position, Record, RecordKey,
    RecordSwap, RecordWrite, Replace, Snapshot, StoreEvents, StoreFuture, Usage,
};
use outlast_engine::{
    Committed, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId, random,
};
use outlast_wire::{Raw, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::batch::{Operation, Reply};
use super::changes::Changes;
use super::connection::{Connector, Link, closed};
use super::error::PostgresError;
use super::leases::Leases;
use super::listener::Listener;
use super::options::PostgresUrl;
use super::progress::PendingProgress;
use super::read::Reader;
use super::schema;
use super::writer::Writer;

/// Stores tasks in a PostgreSQL database, which several processes can use at the same time.
pub struct Postgres {
    reader: Reader,
    leases: Arc<Leases>,
    progress: Arc<PendingProgress>,
    /// `None` after the store was closed.
    writer: Mutex<Option<OpenWriter>>,
    health: Arc<watch::Sender<Health>>,
    /// Loops that end with the store.
    loops: Mutex<JoinSet<()>>,
}

struct OpenWriter {
    queue: mpsc::UnboundedSender<Operation>,
    task: JoinHandle<()>,
}

impl Postgres {
    /// Connects, creates or upgrades the tables, and opens the store.
    pub async fn open(url: &PostgresUrl) -> Result<Self, PostgresError> {
        let options = url.options(|name| std::env::var(name).ok())?;
        let connector = Arc::new(Connector::new(&options)?);
        let mut client = connector.connect().await?;
        schema::migrate(&mut client, &options.schema).await?;
        drop(client);
        let health = Arc::new(watch::Sender::new(Health::Ready));
        let quoted = schema::quote(&options.schema);
        let id = i64::from_be_bytes(random::bytes());
        let (wake, announce) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let notified = Arc::new(AtomicBool::new(false));
        let new_link = || Link::new(connector.clone(), health.clone(), notified.clone());
        let link = Arc::new(new_link());
        let (schema, notify) = (quoted.clone(), announce.clone());
        let leases = Arc::new(Leases::new(link.clone(), schema, id, wake.clone(), notify));
        let changes = Arc::new(Changes {
            link: link.clone(),
            schema: quoted.clone(),
            writer: id,
            leases: leases.clone(),
            notified: notified.clone(),
        });
        let writer = Writer {
            link: new_link(),
            id,
            schema: quoted.clone(),
            wake,
            announce,
            generation: None,
        };
        let (queue, operations) = mpsc::unbounded_channel();
        let task = tokio::spawn(writer.run(operations));
        let mut loops = JoinSet::new();
        loops.spawn(leases.clone().renew_loop());
        loops.spawn(changes.clone().read_loop());
        loops.spawn(changes.clone().announce_loop());
        loops.spawn(Listener { connector, changes }.run());
        Ok(Self {
            reader: Reader {
                link,
                schema: quoted,
            },
            leases,
            progress: Arc::default(),
            writer: Mutex::new(Some(OpenWriter { queue, task })),
            health,
            loops: Mutex::new(loops),
        })
    }

    fn usable(&self) -> Result<(), StoreError> {
        if self.writer.lock().is_some() {
            Ok(())
        } else {
            Err(closed())
        }
    }

    /// Queues an operation. The reply arrives when it is committed.
    fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(Reply<T>) -> Operation,
    ) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        match &*self.writer.lock() {
            Some(writer) if writer.queue.send(operation(reply)).is_ok() => {
                StoreFuture::channel(answer)
            }
            _ => StoreFuture::ready(Err(closed())),
        }
    }

    /// Queues an operation of a node, unless the node has lost its lease.
    fn write_for<T: Send + 'static>(
        &self,
        node: NodeId,
        operation: impl FnOnce(Reply<T>) -> Operation,
    ) -> StoreFuture<'static, T> {
        match self.leases.check_trust(node) {
            Ok(()) => self.write(operation),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }
}

#[async_trait]
impl Store for Postgres {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        let node = insert.task.executor;
        self.write_for(node, |reply| Operation::Insert(insert, reply))
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        let node = replace.node;
        self.write_for(node, |reply| Operation::Replace(replace, reply))
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.write_for(node, |reply| Operation::Remove(node, tasks, reply))
            .await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(async move {
            self.usable()?;
            let task = self.reader.task(scope, id).await?;
            Ok(task.map(Snapshot::from))
        })
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.usable()?;
        self.reader.task(scope, id).await
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        StoreFuture::boxed(async move {
            self.usable()?;
            self.reader.body(scope, id).await
        })
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        self.reader.page(owner, after, limit).await
    }

    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.usable()?;
        self.reader.search(filter, after, limit).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        self.usable()?;
        self.reader.due(now, limit).await
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.usable()?;
        self.leases.claim(node, limit).await
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.usable()?;
        self.reader.usage(owner).await
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.write(|reply| Operation::Records(records, reply)).await
    }

    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError> {
        self.write(|reply| Operation::Swap(swap, now, reply)).await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.usable()?;
        self.reader.record(key, now).await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.usable()?;
        self.reader.records(kind, owner, now).await
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        self.usable()?;
        self.leases.join(node).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        if self.usable().is_err() {
            // The lease of a node that did not leave before the store was closed lapses.
            return Ok(());
        }
        self.leases.leave(node).await
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        self.usable()?;
        self.leases.publish_address(node, address).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.usable()?;
        self.reader.nodes().await
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        if self.progress.add(node, id, progress)
            && let Some(writer) = &*self.writer.lock()
        {
            let taken = OnceLock::new();
            // Without the writer, the store is closed.
            let _ = writer
                .queue
                .send(Operation::Progress(self.progress.clone(), taken));
        }
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        let writer = self.writer.lock().take();
        let Some(OpenWriter { queue, task }) = writer else {
            return Ok(());
        };
        // The writer ends when it has executed what was queued.
        drop(queue);
        // It fails only if the runtime stops.
        let _ = task.await;
        self.loops.lock().abort_all();
        self.health.send_replace(Health::Closed);
        Ok(())
    }
}
