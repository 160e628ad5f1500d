//! The operations of the writer.

use outlast_engine::store::{Insert, InsertResult, RecordSwap, RecordWrite, Replace};
use outlast_engine::{Committed, NodeId, Revision, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::oneshot;

/// The sender of a reply. The caller may have stopped waiting.
pub(in crate::sqlite) type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// One operation.
#[derive(Debug)]
pub(in crate::sqlite) enum Operation {
    /// Adds a task.
    Insert(Insert, ReplySender<InsertResult>),
    /// Changes a task.
    Replace(Replace, ReplySender<Committed<Task>>),
    /// Removes tasks.
    Remove(Removal),
    /// Writes records.
    Records(Vec<RecordWrite>, ReplySender<()>),
    /// Writes a record if the stored bytes at that time are the expected ones.
    SwapRecord(RecordSwap, Timestamp, ReplySender<bool>),
    /// Deletes expired records.
    ExpireRecords(Timestamp),
    /// Ends the writer, after all operations that were queued earlier.
    Close(ReplySender<()>),
}

/// Tasks to remove, a chunk in each batch.
#[derive(Debug)]
pub(in crate::sqlite) struct Removal {
    pub(super) node: NodeId,
    /// The remaining tasks, in row order once the writer has sorted them.
    pub(super) remaining: Vec<(TaskId, Revision)>,
    pub(super) sorted: bool,
    /// The removed tasks.
    pub(super) removed: Vec<TaskId>,
    pub(super) reply: ReplySender<Vec<TaskId>>,
}

impl Removal {
    pub(in crate::sqlite) fn new(
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
        reply: ReplySender<Vec<TaskId>>,
    ) -> Self {
        Self {
            node,
            remaining: tasks,
            sorted: false,
            removed: Vec::new(),
            reply,
        }
    }
}

impl Operation {
    /// Replies with an error.
    pub(super) fn refuse(self, error: StoreError) {
        match self {
            Self::Insert(_, reply) => drop(reply.send(Err(error))),
            Self::Replace(_, reply) => drop(reply.send(Err(error))),
            Self::Remove(removal) => drop(removal.reply.send(Err(error))),
            Self::Records(_, reply) => drop(reply.send(Err(error))),
            Self::SwapRecord(_, _, reply) => drop(reply.send(Err(error))),
            Self::Close(reply) => drop(reply.send(Err(error))),
            Self::ExpireRecords(_) => {}
        }
    }

    /// Whether it inserts a task.
    pub(super) fn is_insert(&self) -> bool {
        matches!(self, Self::Insert(..))
    }

    /// The records that it writes without a condition.
    pub(super) fn records(&self) -> &[RecordWrite] {
        match self {
            Self::Insert(insert, _) => &insert.records,
            Self::Replace(replace, _) => &replace.records,
            Self::Records(records, _) => records,
            Self::Remove(_) | Self::SwapRecord(..) | Self::ExpireRecords(_) | Self::Close(_) => &[],
        }
    }

    /// Whether it can change when the next record expires.
    pub(super) fn changes_record_expiry(&self) -> bool {
        let expires = |write: &RecordWrite| match write {
            RecordWrite::Put(record) => record.expires.is_some(),
            RecordWrite::Delete(_) => false,
        };
        match self {
            Self::ExpireRecords(_) => true,
            Self::SwapRecord(swap, ..) => swap.record.expires.is_some(),
            _ => self.records().iter().any(expires),
        }
    }

    /// The approximate number of bytes that it writes.
    pub(super) fn size_bytes(&self) -> usize {
        let task = match self {
            Self::Insert(insert, _) => insert.task.origin.params.as_ref(),
            Self::Replace(replace, _) => replace.body.as_ref(),
            _ => None,
        };
        let records = self.records().iter().map(|write| match write {
            RecordWrite::Put(record) => record.bytes.len(),
            RecordWrite::Delete(_) => 0,
        });
        let swapped = match self {
            Self::SwapRecord(swap, ..) => swap.record.bytes.len(),
            _ => 0,
        };
        task.map_or(0, Raw::size) + records.sum::<usize>() + swapped
    }

    /// The task it writes.
    pub(super) fn task(&self) -> Option<&Task> {
        match self {
            Self::Insert(insert, _) => Some(&insert.task),
            Self::Replace(replace, _) => Some(&replace.next),
            Self::Remove(_)
            | Self::Records(..)
            | Self::SwapRecord(..)
            | Self::ExpireRecords(_)
            | Self::Close(_) => None,
        }
    }

    /// The body it writes.
    pub(super) fn body(&self) -> Option<&Raw> {
        match self {
            Self::Replace(replace, _) => replace.body.as_ref(),
            _ => None,
        }
    }

    /// Whether it changes `id`.
    pub(super) fn changes(&self, id: TaskId) -> bool {
        match self {
            Self::Insert(insert, _) => insert.task.id == id,
            Self::Replace(replace, _) => replace.next.id == id,
            Self::Remove(removal) => removal
                .remaining
                .iter()
                .any(|(remaining, _)| *remaining == id),
            Self::Records(..) | Self::SwapRecord(..) | Self::ExpireRecords(_) | Self::Close(_) => {
                false
            }
        }
    }
}
