//! What callers ask of the writer.

use std::sync::Arc;

use outlast_engine::store::{Insert, Inserted, RecordWrite, Replace};
use outlast_engine::{Committed, NodeId, Revision, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::oneshot;

use crate::sqlite::unwritten::{OVERHEAD, room_for};

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
    /// Answers when the tables have everything that was asked before.
    Settle(Reply<()>),
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
            Self::Settle(reply) | Self::Close(reply) => drop(reply.send(Err(error))),
            Self::Forget(_) => {}
        }
    }

    /// The records it writes.
    pub(super) fn records(&self) -> &[RecordWrite] {
        match self {
            Self::Insert(insert, _) => &insert.records,
            Self::Replace(replace, _) => &replace.records,
            Self::Records(records, _) => records,
            Self::Remove(_) | Self::Forget(_) | Self::Settle(_) | Self::Close(_) => &[],
        }
    }

    /// Takes the records that it writes.
    pub(super) fn take_records(&mut self) -> Vec<RecordWrite> {
        match self {
            Self::Insert(insert, _) => std::mem::take(&mut insert.records),
            Self::Replace(replace, _) => std::mem::take(&mut replace.records),
            Self::Records(records, _) => std::mem::take(records),
            Self::Remove(_) | Self::Forget(_) | Self::Settle(_) | Self::Close(_) => Vec::new(),
        }
    }

    /// When the first of the records that it puts expires.
    pub(super) fn expiry(&self) -> Option<Timestamp> {
        let expires = |write: &RecordWrite| match write {
            RecordWrite::Put(record) => record.expires,
            RecordWrite::Delete(_) => None,
        };
        self.records().iter().filter_map(expires).min()
    }

    /// About how many bytes it adds to the tables.
    pub(super) fn size(&self) -> usize {
        let texts = match self {
            Self::Insert(insert, _) => insert.task.origin.params.as_ref().map_or(0, Raw::size),
            Self::Replace(replace, _) => replace.body.as_ref().map_or(0, Raw::size),
            Self::Records(..) => 0,
            Self::Remove(_) | Self::Forget(_) | Self::Settle(_) | Self::Close(_) => return 0,
        };
        let records = self.records().iter().map(|write| match write {
            RecordWrite::Put(record) => record.bytes.len(),
            RecordWrite::Delete(_) => 0,
        });
        OVERHEAD + room_for(texts + records.sum::<usize>())
    }

    /// The task it brings.
    pub(super) fn task(&self) -> Option<&Arc<Task>> {
        match self {
            Self::Insert(insert, _) => Some(&insert.task),
            Self::Replace(replace, _) => Some(&replace.next),
            _ => None,
        }
    }

    /// The body it brings.
    pub(super) fn body(&self) -> Option<&Raw> {
        match self {
            Self::Replace(replace, _) => replace.body.as_ref(),
            _ => None,
        }
    }
}
