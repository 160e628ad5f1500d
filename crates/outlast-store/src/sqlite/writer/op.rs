//! What callers ask of the writer.

use outlast_engine::store::{Insert, Inserted, RecordWrite, Replace};
use outlast_engine::{Committed, NodeId, Revision, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::oneshot;

/// Where an answer goes. Nobody may be there any more.
pub(in crate::sqlite) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to be written.
#[derive(Debug)]
pub(in crate::sqlite) enum Op {
    /// Adds a task.
    Insert(Insert, Reply<Inserted>),
    /// Changes one.
    Replace(Replace, Reply<Committed<Task>>),
    /// Removes some.
    Remove(Removal),
    /// Writes records.
    Records(Vec<RecordWrite>, Reply<()>),
    /// Deletes records that have expired.
    Forget(Timestamp),
    /// Ends the writer, after everything that was asked before.
    Close(Reply<()>),
}

/// Tasks to be removed, a portion at a time.
#[derive(Debug)]
pub(in crate::sqlite) struct Removal {
    pub(super) node: NodeId,
    /// Those that are left, in the order of rows once the writer has seen them.
    pub(super) left: Vec<(TaskId, Revision)>,
    pub(super) sorted: bool,
    /// Those that are gone.
    pub(super) removed: Vec<TaskId>,
    pub(super) reply: Reply<Vec<TaskId>>,
}

impl Removal {
    pub(in crate::sqlite) fn new(
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
        reply: Reply<Vec<TaskId>>,
    ) -> Self {
        Self {
            node,
            left: tasks,
            sorted: false,
            removed: Vec::new(),
            reply,
        }
    }
}

impl Op {
    /// Answers that it cannot be done.
    pub(super) fn refuse(self, error: StoreError) {
        match self {
            Self::Insert(_, reply) => drop(reply.send(Err(error))),
            Self::Replace(_, reply) => drop(reply.send(Err(error))),
            Self::Remove(removal) => drop(removal.reply.send(Err(error))),
            Self::Records(_, reply) => drop(reply.send(Err(error))),
            Self::Close(reply) => drop(reply.send(Err(error))),
            Self::Forget(_) => {}
        }
    }

    /// The records it writes.
    pub(super) fn records(&self) -> &[RecordWrite] {
        match self {
            Self::Insert(insert, _) => &insert.records,
            Self::Replace(replace, _) => &replace.records,
            Self::Records(records, _) => records,
            Self::Remove(_) | Self::Forget(_) | Self::Close(_) => &[],
        }
    }

    /// Whether another record may be the next to expire after it.
    pub(super) fn moves_expiry(&self) -> bool {
        let expires = |write: &RecordWrite| match write {
            RecordWrite::Put(record) => record.expires.is_some(),
            RecordWrite::Delete(_) => false,
        };
        matches!(self, Self::Forget(_)) || self.records().iter().any(expires)
    }

    /// The task it brings.
    pub(super) fn task(&self) -> Option<&Task> {
        match self {
            Self::Insert(insert, _) => Some(&insert.task),
            Self::Replace(replace, _) => Some(&replace.next),
            Self::Remove(_) | Self::Records(..) | Self::Forget(_) | Self::Close(_) => None,
        }
    }

    /// The body it brings.
    pub(super) fn body(&self) -> Option<&Raw> {
        match self {
            Self::Replace(replace, _) => replace.body.as_ref(),
            _ => None,
        }
    }

    /// Whether it changes `id`.
    pub(super) fn touches(&self, id: TaskId) -> bool {
        match self {
            Self::Insert(insert, _) => insert.task.id == id,
            Self::Replace(replace, _) => replace.next.id == id,
            Self::Remove(removal) => removal.left.iter().any(|(left, _)| *left == id),
            Self::Records(..) | Self::Forget(_) | Self::Close(_) => false,
        }
    }
}
