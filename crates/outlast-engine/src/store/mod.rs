//! The [`Store`] trait: durable tasks, and [`Committed`] as the proof of a commit.
//!
//! A store holds tasks, their bodies and small [records](Record), and all indexes over them: by id,
//! owner, deadline and request key, and the counts for quotas. The laws that every store obeys are
//! in [`laws`](crate::laws).

mod committed;
mod error;
mod filter;
#[doc(hidden)]
pub mod forward;
mod future;
mod node_status;
mod opening;
mod record;
mod snapshot;

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::{mpsc, watch};

use crate::engine::Progress;
use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::owner::Owner;
use crate::policy::Quota;
use crate::task::Task;

pub use committed::Committed;
pub use error::{Reason, StoreError};
pub use filter::{Filter, Status, Statuses};
pub use future::StoreFuture;
pub use node_status::{NodeState, NodeStatus};
pub use opening::OpeningStore;
pub use record::{Record, RecordKey, RecordSwap, RecordWrite};
pub use snapshot::{Page, Position, Snapshot, TaskSummary, Usage};

/// A durable map from [`TaskId`] to [`Task`] with compare-and-set.
///
/// Every method is one transaction. A write is durable and visible when its future resolves, and
/// not visible before it is durable. No method may cost more because more tasks are stored.
/// Operations that every task needs return a [`StoreFuture`], which allocates nothing if the store
/// has the reply in memory.
///
/// There are no default methods, so a wrapper that omits one does not compile;
/// [`forward_store!`](crate::forward_store) writes the forwarding methods.
///
/// A write that fails with [`StoreError::Unavailable`] may have taken place, and does not take
/// place later. The engine reads the task again. A claim that fails has offered nothing.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds a task and its records, if the quota allows it.
    ///
    /// If the owner has a task with the same request key, nothing is written and the id of that
    /// task is returned.
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult>;

    /// Stores the next revision of a task, its body and the records, if it is still at `expected`.
    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>>;

    /// Removes the tasks that are still at the given revision, and returns their ids.
    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError>;

    /// A task without its body.
    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>>;

    /// The whole task.
    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError>;

    /// The body of an ended task: its result or its error.
    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>>;

    /// Up to `limit` tasks of an owner, newest first, that were inserted before `after`.
    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Up to `limit` tasks that match `filter`, newest first, that were inserted before `after`.
    ///
    /// A store examines a bounded number of tasks: a page may have fewer than `limit` tasks, or
    /// none, although another page follows.
    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Up to `limit` tasks whose [due time](Task::due) has come, and the next due time.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError>;

    /// Offers up to `limit` open tasks whose executor has left, without detached tasks
    /// ([`NodeId::DETACHED`]). Each is offered to one joined node
    /// at a time.
    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError>;

    /// The counts that the quota limits.
    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError>;

    /// Writes records that belong to no task.
    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError>;

    /// Writes a record if the stored bytes are the expected ones at `now`. Returns whether it was
    /// written.
    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError>;

    /// The record under a key, unless it has expired.
    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError>;

    /// All records of a kind that have not expired, of one owner if `owner` is given.
    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError>;

    /// Registers `node` and returns the events that other nodes cause. Tasks that it executes are
    /// not offered to other nodes until it leaves or loses its lease.
    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError>;

    /// Removes `node`. Its open tasks can be claimed.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;

    /// Publishes the address of a joined node, for [`nodes`](Self::nodes). It replaces the one
    /// before, and is kept when the node joins again.
    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError>;

    /// The nodes that are joined, and those that were lost in the last hour, in the order of their
    /// ids.
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError>;

    /// Sends progress of a task to the other joined nodes. It is not stored, and some may be lost:
    /// of several values of one task that wait, only the newest is sent.
    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress);

    /// Whether the store can be written now, and changes of that.
    fn health(&self) -> watch::Receiver<Health>;

    /// Finishes pending operations and closes the files. Later calls are refused.
    async fn close(&self) -> Result<(), StoreError>;
}

/// A task to insert.
#[derive(Debug)]
pub struct Insert {
    /// The task at its first revision.
    pub task: Arc<Task>,
    /// The limits to check.
    pub quota: Quota,
    /// Written in the same transaction.
    pub records: Vec<RecordWrite>,
}

/// The result of an [`Insert`].
#[derive(Debug)]
pub enum InsertResult {
    /// The task is stored.
    New(Committed<Task>),
    /// The owner has this task with the same request key.
    Existing(TaskId),
}

/// A change to store.
#[derive(Debug)]
pub struct Replace {
    /// The node that writes. Other nodes receive an event.
    pub node: NodeId,
    /// The revision the change was computed from.
    pub expected: Revision,
    /// The next revision of the task.
    pub next: Arc<Task>,
    /// The body, if the task ends with one.
    pub body: Option<Raw>,
    /// Written in the same transaction.
    pub records: Vec<RecordWrite>,
}

/// Tasks whose due time has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DueTasks {
    /// The due tasks, at their newest revision.
    pub tasks: Vec<(TaskId, Revision)>,
    /// The next due time after these tasks are handled.
    pub next: Option<Timestamp>,
}

/// Receives the events of other nodes. There may be superfluous events; none is missing.
pub type StoreEvents = mpsc::UnboundedReceiver<StoreEvent>;

/// An event caused by another node.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreEvent {
    /// A task changed or was removed.
    TaskChanged(TaskId),
    /// The work of a task reported progress.
    Progress(TaskId, Progress),
    /// A node left: there may be tasks to claim.
    NodeLeft,
    /// This node could not renew its lease in time, and other nodes may claim its tasks. The store
    /// refuses its writes until it joins again. It is the last event.
    LeaseLost,
}

/// Whether a store can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can be written.
    Ready,
    /// The disk is nearly full: stored tasks can be finished, new ones are refused.
    NoSpace(Reason),
    /// Nothing can be written for now.
    Down(Reason),
    /// It was closed.
    Closed,
}
