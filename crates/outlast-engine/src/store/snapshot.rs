//! What a store returns about tasks without reading their bodies.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::Committed;
use crate::id::{Attempt, Revision, TaskId};
use crate::outcome::Ending;
use crate::owner::Owner;
use crate::task::{State, Task};

/// The current state of a task: the whole task while it is open, a summary when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Snapshot {
    /// The task works or awaits input.
    Open(Committed<Task>),
    /// The task has ended.
    Ended(Committed<TaskSummary>),
}

/// The part of an ended task that a store holds in memory.
// The fields are in the order of use: a lookup reads the owner and the expiry first, and both are
// on the cache line of the reference count.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct TaskSummary {
    /// The owner of the task.
    pub owner: Owner,
    /// When it was accepted.
    pub created: Timestamp,
    /// The time from creation to expiry in milliseconds.
    pub ttl_ms: u64,
    /// The id of the task.
    pub id: TaskId,
    /// The request key: a repeated request with the same key finds this task.
    pub request_key: Option<Arc<str>>,
    /// The runner that ran it.
    pub runner: Arc<str>,
    /// The tool, where the method has one.
    pub tool: Option<Arc<str>>,
    /// How it ended.
    pub ending: Ending,
    /// The status message.
    pub message: Option<Arc<str>>,
    /// When it ended.
    pub updated: Timestamp,
    /// The poll interval to report while the task is young, in milliseconds.
    pub poll_interval_ms: u32,
    /// Its revision.
    pub revision: Revision,
    /// The attempt that ended it.
    pub attempt: Attempt,
}

/// The position of a task among all tasks of a store, in the order of insertion. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// A page of an owner's list or of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The tasks, newest first.
    pub tasks: Vec<Snapshot>,
    /// The position after which the next page starts, if there is one.
    pub next: Option<Position>,
}

/// Counts of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tasks of the owner that have not ended.
    pub owner_open: u32,
    /// Tasks of the owner.
    pub owner_retained: u32,
    /// All tasks that have not ended.
    pub open: u64,
    /// All tasks.
    pub retained: u64,
}

impl Snapshot {
    /// The id of the task.
    pub fn id(&self) -> TaskId {
        match self {
            Self::Open(task) => task.id,
            Self::Ended(summary) => summary.id,
        }
    }

    /// The owner of the task.
    pub fn owner(&self) -> &Owner {
        match self {
            Self::Open(task) => &task.owner,
            Self::Ended(summary) => &summary.owner,
        }
    }

    /// The runner that runs it, or ran it.
    pub fn runner(&self) -> &Arc<str> {
        match self {
            Self::Open(task) => &task.origin.runner,
            Self::Ended(summary) => &summary.runner,
        }
    }

    /// The tool, where the method has one.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Open(task) => task.origin.tool.as_deref(),
            Self::Ended(summary) => summary.tool.as_deref(),
        }
    }

    /// When it was accepted.
    pub fn created(&self) -> Timestamp {
        match self {
            Self::Open(task) => task.created,
            Self::Ended(summary) => summary.created,
        }
    }

    /// Its revision.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Open(task) => task.revision,
            Self::Ended(summary) => summary.revision,
        }
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Open(_) => None,
            Self::Ended(summary) => Some(summary.ending),
        }
    }

    /// The status message.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Open(task) => task.message.as_deref(),
            Self::Ended(summary) => summary.message.as_deref(),
        }
    }

    /// Whether the task has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        match self {
            Self::Open(task) => task.is_expired(now),
            Self::Ended(summary) => now >= summary.expires(),
        }
    }
}

impl From<Committed<Task>> for Snapshot {
    fn from(task: Committed<Task>) -> Self {
        match task.derive(TaskSummary::of) {
            Some(summary) => Self::Ended(summary),
            None => Self::Open(task),
        }
    }
}

impl TaskSummary {
    /// The summary of `task`, if it has ended.
    pub fn of(task: &Task) -> Option<Self> {
        let State::Ended(ending) = task.state else {
            return None;
        };
        Some(Self {
            id: task.id,
            owner: task.owner.clone(),
            request_key: task.request_key.clone(),
            runner: task.origin.runner.clone(),
            tool: task.origin.tool.clone(),
            ending,
            message: task.message.clone(),
            created: task.created,
            updated: task.updated,
            ttl_ms: task.lifetime.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            revision: task.revision,
            attempt: task.attempt,
        })
    }

    /// When the task expires.
    pub fn expires(&self) -> Timestamp {
        self.created.plus(self.ttl_ms)
    }
}
