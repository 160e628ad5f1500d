//! A task as a value. Nothing here reads a clock, makes a random number or waits.
//!
//! Only [`transition`](crate::transition) changes a task. Encoding is in the wire crate, durability
//! in stores.

mod input_history;
mod lifetime;
mod state;
mod timeline;

use std::ops::Deref;
use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::input::Outstanding;
use crate::origin::Origin;
use crate::owner::Owner;

pub use input_history::{InputFields, InputHistory};
pub use lifetime::{Lifetime, TtlPolicy};
pub use state::State;
pub use timeline::{Timeline, TimelineEntries, TimelineEntry, TimelineEvent};

/// A task at one revision. Dereferences to [`Fields`]; change it with [`Task::apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Task(Fields);

/// The fields of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// Its id.
    pub id: TaskId,
    /// Its owner.
    pub owner: Owner,
    /// The request that it runs.
    pub origin: Arc<Origin>,
    /// The request key: a repeated request with the same key finds this task.
    pub request_key: Option<Arc<str>>,
    /// The engine that runs it, or that ran it last.
    pub executor: NodeId,
    /// The current attempt at the call.
    pub attempt: Attempt,
    /// Its state.
    pub state: State,
    /// Its revision.
    pub revision: Revision,
    /// When it was accepted.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// Its TTL and run limit.
    pub lifetime: Lifetime,
    /// The poll interval to report while the task is young, in milliseconds.
    pub poll_interval_ms: u32,
    /// The status message.
    pub message: Option<Arc<str>>,
    /// Set when the caller requests a cancellation.
    pub cancel: Option<CancelIntent>,
    /// What its runner needs to re-attach to the work after a restart.
    pub resume_state: Option<ResumeState>,
    /// The keys of its input requests, and the responses not yet confirmed.
    pub input: InputHistory,
    /// Its history.
    pub timeline: Timeline,
}

/// A requested cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelIntent {
    /// When the caller requested it.
    pub requested: Timestamp,
    /// When the task ends as cancelled if its runner has not ended it.
    pub deadline: Timestamp,
}

/// Opaque bytes with which a runner re-attaches to its work after a restart, such as a reference to
/// an upstream task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeState(pub Arc<[u8]>);

/// The stored fields contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored task {id} is inconsistent: {what}")]
pub struct InconsistentTask {
    /// The task.
    pub id: TaskId,
    /// The contradiction.
    pub what: &'static str,
}

impl Task {
    /// A new task.
    pub fn new(new: NewTask, now: Timestamp) -> Self {
        Self(Fields {
            id: new.id,
            owner: new.owner,
            origin: new.origin,
            request_key: new.request_key,
            executor: new.executor,
            attempt: Attempt(1),
            state: State::Working,
            revision: Revision(1),
            created: now,
            updated: now,
            lifetime: new.lifetime,
            poll_interval_ms: new.poll_interval_ms,
            message: None,
            cancel: None,
            resume_state: None,
            input: InputHistory::default(),
            timeline: Timeline::starting(now),
        })
    }

    /// Sets the first status message.
    pub(crate) fn with_message(mut self, message: Option<Arc<str>>) -> Self {
        self.0.message = message;
        self
    }

    /// Sets the resume state of work that started before the task was created.
    pub(crate) fn with_resume_state(mut self, state: Option<ResumeState>) -> Self {
        self.0.resume_state = state;
        self
    }

    /// A task from stored fields, if they are consistent.
    pub fn restore(fields: Fields) -> Result<Self, InconsistentTask> {
        let id = fields.id;
        let bad = |what| Err(InconsistentTask { id, what });
        if fields.updated < fields.created {
            return bad("it was updated before it was created");
        }
        if let State::AwaitingInput(outstanding) = &fields.state
            && !outstanding
                .iter()
                .all(|(key, _)| fields.input.keys.contains(key))
        {
            return bad("it awaits input under a key that it never used");
        }
        if matches!(fields.state, State::Ended(_)) && !fields.input.responses.is_empty() {
            return bad("it has ended and still has input responses");
        }
        Ok(Self(fields))
    }

    /// Whether the task has expired at `now`. An open task with [`TtlPolicy::KeepLive`] never
    /// expires.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let kept = self.lifetime.ttl_policy == TtlPolicy::KeepLive && self.state.ending().is_none();
        now >= self.expires() && !kept
    }

    /// When the engine must next act on the task without a request: its expiry, its run limit, or
    /// the deadline of a cancellation.
    pub fn due(&self) -> Timestamp {
        let expires = self.expires();
        if matches!(self.state, State::Ended(_)) {
            return expires;
        }
        let cancel = self.cancel.map(|intent| intent.deadline);
        let limit = self.lifetime.run_limit_at(self.created, &self.state);
        [cancel, limit]
            .into_iter()
            .flatten()
            .fold(expires, Timestamp::min)
    }

    /// The input requests without a response.
    pub fn outstanding(&self) -> Option<&Outstanding> {
        match &self.state {
            State::AwaitingInput(outstanding) => Some(outstanding),
            State::Working | State::Ended(_) => None,
        }
    }

    pub(crate) fn fields(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl Fields {
    /// When the task expires.
    pub fn expires(&self) -> Timestamp {
        self.created.plus(self.lifetime.ttl_ms)
    }
}

/// The fields that the creator of a task chooses.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// A new id.
    pub id: TaskId,
    /// The owner.
    pub owner: Owner,
    /// The request.
    pub origin: Arc<Origin>,
    /// The request key: a repeated request with the same key finds this task.
    pub request_key: Option<Arc<str>>,
    /// The engine that will run it.
    pub executor: NodeId,
    /// The TTL and run limit.
    pub lifetime: Lifetime,
    /// The poll interval to report while the task is young, in milliseconds.
    pub poll_interval_ms: u32,
}

impl Deref for Task {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}
