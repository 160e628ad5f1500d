//! One task as a value. Nothing here reads a clock, draws a random number or waits.
//!
//! The only code that changes a task is [`transition`](crate::transition). Encoding lives in the wire
//! crate, durability in stores.

mod input_history;
mod lifetime;
mod state;
mod timeline;

use std::ops::Deref;
use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::input::Outstanding;
use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::origin::Origin;
use crate::owner::Owner;

pub use input_history::{Asked, Questions};
pub use lifetime::{Keep, Lifetime};
pub use state::State;
pub use timeline::{Happening, Moment, Moments, Timeline};

/// A task at one revision. Read its [`Fields`]; change it with [`Task::apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Task(Fields);

/// What a task consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// The name of the task.
    pub id: TaskId,
    /// Whose task it is.
    pub owner: Owner,
    /// The request it runs.
    pub origin: Arc<Origin>,
    /// The key under which its creator may ask for it again.
    pub request_key: Option<Arc<str>>,
    /// The engine that runs it, or ran it last.
    pub executor: NodeId,
    /// Which start of the call this is.
    pub attempt: Attempt,
    /// Where it stands.
    pub state: State,
    /// How often it was stored.
    pub revision: Revision,
    /// When it was accepted.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// How often its caller should poll while it is young, in milliseconds.
    pub poll_interval: u32,
    /// A sentence about where it stands, for people.
    pub message: Option<Arc<str>>,
    /// Set once its caller has asked that the work stop.
    pub cancel: Option<CancelIntent>,
    /// What its runner needs to find the work again after a restart.
    pub handle: Option<Handle>,
    /// Questions asked and answers not yet confirmed.
    pub asked: Asked,
    /// What happened when.
    pub timeline: Timeline,
}

/// That a caller wants the work to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelIntent {
    /// When the caller said so.
    pub requested: Timestamp,
    /// When the task ends as cancelled if its runner stays silent.
    pub deadline: Timestamp,
}

/// Opaque bytes of a runner that can re-attach: an upstream task, a sealed request state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle(pub Arc<[u8]>);

/// What a stored row says cannot be a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored task {id} is inconsistent: {what}")]
pub struct Inconsistent {
    /// The task.
    pub id: TaskId,
    /// What does not fit.
    pub what: &'static str,
}

impl Task {
    /// A task that has just been accepted.
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
            poll_interval: new.poll_interval,
            message: None,
            cancel: None,
            handle: None,
            asked: Asked::default(),
            timeline: Timeline::starting(now),
        })
    }

    /// The same with a first status message.
    pub(crate) fn with_message(mut self, message: Option<Arc<str>>) -> Self {
        self.0.message = message;
        self
    }

    /// The same with the resume state of work that began before the task.
    pub(crate) fn with_handle(mut self, handle: Option<Handle>) -> Self {
        self.0.handle = handle;
        self
    }

    /// The task that a store has kept, if its parts fit together.
    pub fn restore(fields: Fields) -> Result<Self, Inconsistent> {
        let id = fields.id;
        let bad = |what| Err(Inconsistent { id, what });
        if fields.updated < fields.created {
            return bad("it was updated before it was created");
        }
        if let State::AwaitingInput(outstanding) = &fields.state
            && !outstanding
                .iter()
                .all(|(key, _)| fields.asked.keys.contains(key))
        {
            return bad("it waits for a question it never asked");
        }
        if matches!(fields.state, State::Ended(_)) && !fields.asked.answers.is_empty() {
            return bad("it has ended and still holds answers");
        }
        Ok(Self(fields))
    }

    /// Whether the task's time is over at `now`. Work that is kept while it lives has no such time.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        let kept = self.lifetime.keep == Keep::WhileLive && self.state.ending().is_none();
        now >= self.expires() && !kept
    }

    /// When the task next needs attention although nobody calls: its expiry, its run limit, or the
    /// deadline of a cancellation.
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

    /// The questions that wait for an answer.
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
    /// When the task stops being visible.
    pub fn expires(&self) -> Timestamp {
        self.created.plus(self.lifetime.ttl)
    }
}

/// What a new task is made from.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// A fresh id.
    pub id: TaskId,
    /// Whose task it will be.
    pub owner: Owner,
    /// The request.
    pub origin: Arc<Origin>,
    /// The key under which its creator may ask for it again.
    pub request_key: Option<Arc<str>>,
    /// The engine that will run it.
    pub executor: NodeId,
    /// How long it will live.
    pub lifetime: Lifetime,
    /// How often its caller should poll while it is young, in milliseconds.
    pub poll_interval: u32,
}

impl Deref for Task {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}
