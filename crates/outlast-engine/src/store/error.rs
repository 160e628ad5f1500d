//! Errors of a store. The variant says who must act.

use std::sync::Arc;

use crate::id::{Revision, TaskId};
use crate::owner::Owner;

/// Why a store refused or failed an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer changed or removed the task first: load it again.
    #[error("task {id} changed since revision {expected}")]
    Conflict {
        /// The task.
        id: TaskId,
        /// The revision that the caller expected.
        expected: Revision,
    },
    /// A task with this id exists: use another id.
    #[error("a task with the id {0} exists already")]
    Exists(TaskId),
    /// The owner has the maximum number of open tasks: finish or cancel some.
    #[error("this owner has {limit} running tasks, the maximum; wait for one to end or cancel one")]
    OwnerBusy {
        /// The owner.
        owner: Owner,
        /// The limit.
        limit: u32,
    },
    /// The owner has the maximum number of stored tasks: wait for some to expire.
    #[error("this owner has {limit} stored tasks, the maximum; wait for some to expire")]
    OwnerFull {
        /// The owner.
        owner: Owner,
        /// The limit.
        limit: u32,
    },
    /// All owners together have the maximum number of open tasks: wait for some to end.
    #[error("{limit} tasks are running, the maximum for all owners; wait for some to end")]
    Busy {
        /// The limit.
        limit: u64,
    },
    /// The store has the maximum number of tasks: wait for some to expire.
    #[error("the store has {limit} tasks, the maximum; wait for some to expire")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// The store cannot do it now: wait and retry. The operation may have taken place.
    #[error("the store is unavailable: {0}")]
    Unavailable(Reason),
    /// The store is being opened, or tasks of a previous run are being recovered. Nothing was done:
    /// retry in a moment.
    #[error("starting: the server opens its store and recovers tasks; retry in a moment")]
    Starting,
    /// The stored bytes are not what was written: an operator must repair or replace the store.
    #[error("the store is damaged: {0}")]
    Corrupt(Reason),
}

/// The cause of a failure, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Arc<str>);

impl Reason {
    /// A reason with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl StoreError {
    /// Whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
