//! What a store tells of tasks without opening their bodies.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::Committed;
use crate::id::{Attempt, Revision, TaskId};
use crate::outcome::Ending;
use crate::owner::Owner;
use crate::task::{State, Task};

/// A task as it stands: in full while it is open, in brief when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Snapshot {
    /// It works or awaits input.
    Open(Committed<Task>),
    /// It has ended.
    Ended(Committed<Brief>),
}

/// What is kept at hand of a task that has ended.
// In the order of use: whoever looks a task up among a million asks whose it is and whether its time
// is over, and finds both where it finds the counter of those who share this.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Brief {
    /// Whose task it is.
    pub owner: Owner,
    /// When it was accepted.
    pub created: Timestamp,
    /// From creation to expiry, in milliseconds.
    pub ttl: u64,
    /// The task.
    pub id: TaskId,
    /// The key under which its creator may ask for it again.
    pub request_key: Option<Arc<str>>,
    /// The runner that ran it.
    pub runner: Arc<str>,
    /// How it ended.
    pub ending: Ending,
    /// A sentence about the ending.
    pub message: Option<Arc<str>>,
    /// When it ended.
    pub updated: Timestamp,
    /// How often its caller should poll while it is young, in milliseconds.
    pub poll_interval: u32,
    /// How often it was stored.
    pub revision: Revision,
    /// Which start of the call ended it.
    pub attempt: Attempt,
}

/// A place in an owner's list: that of one task, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// Part of an owner's list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The tasks, newest first.
    pub tasks: Vec<Snapshot>,
    /// Where the next part begins, if there is one.
    pub next: Option<Position>,
}

/// How many tasks there are.
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
    /// The task.
    pub fn id(&self) -> TaskId {
        match self {
            Self::Open(task) => task.id,
            Self::Ended(brief) => brief.id,
        }
    }

    /// Whose task it is.
    pub fn owner(&self) -> &Owner {
        match self {
            Self::Open(task) => &task.owner,
            Self::Ended(brief) => &brief.owner,
        }
    }

    /// The runner that runs it, or ran it.
    pub fn runner(&self) -> &Arc<str> {
        match self {
            Self::Open(task) => &task.origin.runner,
            Self::Ended(brief) => &brief.runner,
        }
    }

    /// How often it was stored.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Open(task) => task.revision,
            Self::Ended(brief) => brief.revision,
        }
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Open(_) => None,
            Self::Ended(brief) => Some(brief.ending),
        }
    }

    /// A sentence about where it stands.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Open(task) => task.message.as_deref(),
            Self::Ended(brief) => brief.message.as_deref(),
        }
    }

    /// Whether the task's time is over at `now`.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        match self {
            Self::Open(task) => task.is_gone(now),
            Self::Ended(brief) => now >= brief.expires(),
        }
    }
}

impl From<Committed<Task>> for Snapshot {
    fn from(task: Committed<Task>) -> Self {
        match task.derive(Brief::of) {
            Some(brief) => Self::Ended(brief),
            None => Self::Open(task),
        }
    }
}

impl Brief {
    /// What is kept at hand of `task`, if it has ended.
    pub fn of(task: &Task) -> Option<Self> {
        let State::Ended(ending) = task.state else {
            return None;
        };
        Some(Self {
            id: task.id,
            owner: task.owner.clone(),
            request_key: task.request_key.clone(),
            runner: task.origin.runner.clone(),
            ending,
            message: task.message.clone(),
            created: task.created,
            updated: task.updated,
            ttl: task.lifetime.ttl,
            poll_interval: task.poll_interval,
            revision: task.revision,
            attempt: task.attempt,
        })
    }

    /// When the task stops being visible.
    pub fn expires(&self) -> Timestamp {
        self.created.plus(self.ttl)
    }
}
