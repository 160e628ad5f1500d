//! What a durable home for tasks must promise, and the proof it hands out.
//!
//! A store keeps tasks, their bodies and small [records](Record), and all indexes over them: by id, by
//! owner, by deadline, by request key, and the counts that quotas need. The laws every store obeys
//! are in [`laws`](crate::laws).

mod error;
#[doc(hidden)]
pub mod forward;
mod future;
mod opening;
mod committed;
mod record;
mod snapshot;

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::{mpsc, watch};

use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::owner::Owner;
use crate::policy::Quota;
use crate::task::Task;

pub use error::{Reason, StoreError};
pub use future::StoreFuture;
pub use opening::OpeningStore;
pub use committed::Committed;
pub use record::{Record, RecordKey, RecordWrite};
pub use snapshot::{Brief, Page, Position, Snapshot, Usage};

/// A durable map from [`TaskId`] to [`Task`] with compare-and-set.
///
/// Every method is one transaction; a write is durable and visible when its future resolves, and not
/// visible before it is durable. There are no default methods: a wrapper that forgets to forward one
/// must fail to compile; [`forward_store!`](crate::forward_store) writes those that it names. No method may cost more because more tasks are retained. Operations
/// that every task needs reply by a [`StoreFuture`], which allocates nothing where the reply is known.
///
/// A write that is answered with [`StoreError::Unavailable`] may have taken place, and does not take
/// place later. Engines look again; a claim that fails has offered nothing.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds a task, if its owner and the store have room, and the records with it.
    ///
    /// If the owner has a task under the same request key already, nothing is written and that task
    /// is named.
    fn insert(&self, insert: Insert) -> StoreFuture<'static, Inserted>;

    /// Stores the next revision of a task, its body and the records, if it is still at `expected`.
    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>>;

    /// Removes those of the tasks that are still at the given revision, and names them.
    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError>;

    /// What is known of a task without opening its body.
    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>>;

    /// The whole task.
    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError>;

    /// The body of an ended task: its result or its error.
    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>>;

    /// Up to `limit` tasks of an owner, newest first, that were created before `after`.
    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Up to `limit` tasks whose [due](Task::due) moment has come, and the moment after those.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError>;

    /// Up to `limit` open tasks whose executor is gone; each is offered to one living node at a time.
    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError>;

    /// How much of the quota is used.
    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError>;

    /// Writes records that belong to no task.
    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError>;

    /// The record under a key, unless it has expired.
    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError>;

    /// All living records of a kind, of one owner if one is named.
    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError>;

    /// Says that `node` lives and wants to hear of what other nodes change. What it executes is its
    /// own until it leaves.
    async fn join(&self, node: NodeId) -> Result<Feed, StoreError>;

    /// Says that `node` is gone. Its open tasks can be claimed.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;

    /// Whether the store can be written now, and news of it.
    fn health(&self) -> watch::Receiver<Health>;

    /// Finishes what is under way and lets go of the files. Later calls are refused.
    async fn close(&self) -> Result<(), StoreError>;
}

/// A task to be added.
#[derive(Debug)]
pub struct Insert {
    /// The task at its first revision.
    pub task: Arc<Task>,
    /// The room there is.
    pub quota: Quota,
    /// Written in the same transaction.
    pub records: Vec<RecordWrite>,
}

/// What became of an [`Insert`].
#[derive(Debug)]
pub enum Inserted {
    /// The task is stored.
    New(Committed<Task>),
    /// The owner used the request key before, for this task.
    Known(TaskId),
}

/// A change to be stored.
#[derive(Debug)]
pub struct Replace {
    /// Who writes; other nodes hear of it.
    pub node: NodeId,
    /// The revision the change was computed from.
    pub expected: Revision,
    /// The task as it will be.
    pub next: Arc<Task>,
    /// The body, if the task ends with one.
    pub body: Option<Raw>,
    /// Written in the same transaction.
    pub records: Vec<RecordWrite>,
}

/// Tasks that need attention.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Due {
    /// They need it now.
    pub tasks: Vec<(TaskId, Revision)>,
    /// When the next one will, if none of the above is left.
    pub next: Option<Timestamp>,
}

/// News from other nodes. May say too much, never too little.
pub type Feed = mpsc::UnboundedReceiver<News>;

/// What another node did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A task changed or was removed.
    Changed(TaskId),
    /// A node left; there may be tasks to claim.
    Orphans,
}

/// Whether a store can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Ready,
    /// Tasks that exist can be finished, new ones are refused.
    NoRoom(Reason),
    /// Nothing can be written for now.
    Down(Reason),
    /// It was closed.
    Closed,
}
