//! Why a store could not do as asked. The variant says who must act.

use std::sync::Arc;

use crate::id::{Revision, TaskId};
use crate::owner::Owner;

/// Why a store could not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else changed the task first, or removed it: load it again.
    #[error("task {id} changed since revision {expected}")]
    Conflict {
        /// The task.
        id: TaskId,
        /// The revision the caller had in hand.
        expected: Revision,
    },
    /// A task with this id exists: draw another.
    #[error("task {0} exists already")]
    Exists(TaskId),
    /// The owner has as many running tasks as it may have: finish or cancel some.
    #[error(
        "{limit} tasks of this owner are running, the most allowed; wait for one to end or cancel one"
    )]
    OwnerBusy {
        /// The owner.
        owner: Owner,
        /// The limit.
        limit: u32,
    },
    /// The owner has as many tasks as may be kept for it: wait for some to expire.
    #[error("{limit} tasks of this owner are kept, the most allowed; wait for some to expire")]
    OwnerFull {
        /// The owner.
        owner: Owner,
        /// The limit.
        limit: u32,
    },
    /// As many tasks run as may run at once, of all owners: wait for some to end.
    #[error("{limit} tasks are running, the most allowed in all; wait for some to end")]
    Busy {
        /// The limit.
        limit: u64,
    },
    /// The store keeps as many tasks as it may.
    #[error("the store holds {limit} tasks, the most allowed; wait for some to expire")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// The backend cannot do it now: wait and try again.
    #[error("the store is unavailable: {0}")]
    Unavailable(Reason),
    /// The store is being opened, or tasks of a previous run are being recovered. Nothing was done: try
    /// again in a moment.
    #[error("starting: the server opens its store and recovers tasks; try again in a moment")]
    Starting,
    /// The stored bytes are not what was written: an operator must look.
    #[error("the store is damaged: {0}")]
    Corrupt(Reason),
}

/// What an operator should know about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Arc<str>);

impl Reason {
    /// The reason in words.
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
    /// Whether trying the same again later may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
