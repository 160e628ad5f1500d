//! The only code that changes a task: one pure function from a task and a command to a [`Step`].
//!
//! Time is an argument, and consequences are returned as [`Effect`]s. A step takes effect when a
//! store has committed it; no code may act on it before.

mod cancel;
mod claim;
mod detach;
mod end;
mod expire;
mod input;
mod report;

#[cfg(test)]
mod laws;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::{Raw, Timestamp};

use crate::id::{Attempt, InputKey, NodeId};
use crate::input::{InputRequest, InputResponse, Outstanding};
use crate::outcome::{Ending, Outcome, StatusMessage};
use crate::task::{Fields, ResumeState, State, Task};

/// A change to a task.
#[derive(Clone, Debug)]
pub enum Command {
    /// The runner makes an input request to the caller.
    RequestInput {
        /// The attempt of the runner.
        attempt: Attempt,
        /// A key that the task has not used.
        key: InputKey,
        /// The input request.
        request: InputRequest,
        /// The maximum number of input requests of a task.
        limit: usize,
    },
    /// The runner withdraws an input request.
    WithdrawInput {
        /// The attempt of the runner.
        attempt: Attempt,
        /// The key of the request.
        key: InputKey,
    },
    /// The caller sends input responses. Keys that are not outstanding are ignored.
    ProvideInput(BTreeMap<InputKey, InputResponse>),
    /// The runner has used a response: it need not be stored any longer.
    ConfirmInput {
        /// The attempt of the runner.
        attempt: Attempt,
        /// The key of the request.
        key: InputKey,
    },
    /// The runner sets the status message.
    Status {
        /// The attempt of the runner.
        attempt: Attempt,
        /// The status message.
        message: Arc<str>,
    },
    /// The runner saves what it needs to re-attach to its work after a restart.
    SaveResumeState {
        /// The attempt of the runner.
        attempt: Attempt,
        /// The resume state.
        state: ResumeState,
    },
    /// The caller cancels the task immediately.
    CancelNow,
    /// The caller requests a cancellation; the task ends as cancelled at `deadline` at the latest.
    RequestCancel {
        /// The end of the time in which the runner may end the task.
        deadline: Timestamp,
    },
    /// The work has ended.
    End {
        /// The attempt of the runner.
        attempt: Attempt,
        /// How it ended.
        outcome: Outcome,
        /// The final status message, in place of the one of the outcome.
        message: StatusMessage,
    },
    /// The time of [`Task::due`] has come.
    Due,
    /// The task expires `ttl` milliseconds after its creation.
    Extend {
        /// The new TTL.
        ttl: u64,
    },
    /// The runner gives the work away: from now on the task has no executor.
    Detach {
        /// The attempt of the runner.
        attempt: Attempt,
        /// What the engine needs to check later reports.
        state: ResumeState,
        /// How long the work may run from now on, in milliseconds, if that changes.
        limit_ms: Option<u64>,
    },
    /// The detached work is alive and may run for a further `limit_ms`.
    Heartbeat {
        /// The attempt of the detached work.
        attempt: Attempt,
        /// How long it may run from now on, in milliseconds.
        limit_ms: u64,
    },
    /// An engine takes the task over from an executor that was lost.
    Claim {
        /// The new executor.
        executor: NodeId,
        /// Whether the work continues or starts again.
        how: Takeover,
    },
}

/// How a task continues after its executor was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// The runner re-attaches by its resume state; open input requests stay open.
    Reattach,
    /// The call starts from the beginning; open input requests and unconfirmed responses are
    /// dropped.
    Rerun,
}

/// A change that is computed but not committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The next revision of the task, or its removal.
    pub next: Next,
    /// The effects to perform after `next` is committed, never before.
    pub effects: Effects,
}

/// The next revision of a task, or its removal.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The task to store, with its body if it has just ended with one.
    Stored(Arc<Task>, Option<Raw>),
    /// The task is removed.
    Removed,
}

/// What the engine does after a [`Step`] is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Notify watchers of the change.
    Publish,
    /// Complete the requests that wait for the end of the task.
    Wake,
    /// Deliver the stored input response to the running work.
    Deliver(InputKey),
    /// Notify the running work of the requested cancellation.
    NotifyCancel,
    /// Abort the running work: its outcome is not used.
    Stop,
}

/// Effects in their order. Borrowed for most steps, because theirs are constant.
pub type Effects = Cow<'static, [Effect]>;

/// Why a command was not applied. The task is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The task has already ended, in this way (S0-50).
    #[error("Cannot transition from terminal status '{0}': the task has already ended")]
    AlreadyEnded(Ending),
    /// The call has ended, and no task of it is stored.
    #[error("the call has already ended")]
    CallEnded,
    /// The task has expired.
    #[error("the task has expired")]
    Expired,
    /// A newer attempt runs the task.
    #[error("attempt {} was superseded by attempt {}", .given.0, .current.0)]
    Superseded {
        /// The attempt of the command.
        given: Attempt,
        /// The current attempt.
        current: Attempt,
    },
    /// The key was used before in this task.
    #[error("the input key {0} was already used in this task")]
    KeyReused(InputKey),
    /// The task has made the maximum number of input requests.
    #[error("a task may make at most {limit} input requests")]
    TooManyInputRequests {
        /// The limit.
        limit: usize,
    },
    /// No input request with these keys is outstanding.
    #[error("no input request with that key is outstanding")]
    NotOutstanding,
    /// No deadline has passed.
    #[error("nothing is due yet")]
    NotDue,
    /// The command would change nothing.
    #[error("nothing would change")]
    Unchanged,
}

impl Task {
    /// Computes the step that `command` makes at `now`. A shared task is not changed. A task with a
    /// single reference is changed in place; if the command is refused, it must be discarded.
    pub fn apply(self: Arc<Self>, command: Command, now: Timestamp) -> Result<Step, Refused> {
        if let Command::Due = command {
            if self.is_expired(now) {
                return Ok(expire::removal());
            }
        } else {
            self.check(&command, now)?;
        }
        let mut next = self;
        let fields = Arc::make_mut(&mut next).fields();
        let CommandResult { body, effects } = change(fields, command, now)?;
        // V1-LIFE-9: the timestamps of a task never go back.
        fields.updated = fields.updated.max(now);
        fields.revision = fields.revision.next();
        Ok(Step {
            next: Next::Stored(next, body),
            effects,
        })
    }

    /// Checks what does not depend on the command's own rules: expiry, the end, the attempt.
    fn check(&self, command: &Command, now: Timestamp) -> Result<(), Refused> {
        // An expired task can only be removed.
        if self.is_expired(now) {
            return Err(Refused::Expired);
        }
        if let Some(ending) = self.state.ending()
            && !matches!(command, Command::Extend { .. })
        {
            return Err(Refused::AlreadyEnded(ending));
        }
        if let Some(given) = command.attempt()
            && given != self.attempt
        {
            return Err(Refused::Superseded {
                given,
                current: self.attempt,
            });
        }
        Ok(())
    }
}

/// What a command produces apart from the changed fields.
struct CommandResult {
    body: Option<Raw>,
    effects: Effects,
}

impl From<Effects> for CommandResult {
    fn from(effects: Effects) -> Self {
        Self {
            body: None,
            effects,
        }
    }
}

fn change(fields: &mut Fields, command: Command, now: Timestamp) -> Result<CommandResult, Refused> {
    let effects = match command {
        Command::Due => return expire::due(fields, now),
        Command::CancelNow => return Ok(cancel::now(fields, now)),
        Command::End {
            outcome, message, ..
        } => return Ok(end::end(fields, outcome, message, now)),
        Command::RequestInput {
            key,
            request,
            limit,
            ..
        } => input::request(fields, key, request, limit, now)?,
        Command::WithdrawInput { key, .. } => input::withdraw(fields, key, now)?,
        Command::ProvideInput(responses) => input::provide(fields, responses, now)?,
        Command::ConfirmInput { key, .. } => input::confirm(fields, &key)?,
        Command::Status { message, .. } => report::status(fields, message, now)?,
        Command::SaveResumeState { state, .. } => report::save_resume_state(fields, state, now),
        Command::RequestCancel { deadline } => cancel::request(fields, deadline, now)?,
        Command::Extend { ttl } => expire::extend(fields, ttl, now)?,
        Command::Detach {
            state, limit_ms, ..
        } => detach::detach(fields, state, limit_ms, now),
        Command::Heartbeat { limit_ms, .. } => detach::heartbeat(fields, limit_ms, now)?,
        Command::Claim { executor, how } => claim::claim(fields, executor, how, now),
    };
    Ok(effects.into())
}

impl Command {
    /// The attempt of a command that a runner sends.
    fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::RequestInput { attempt, .. }
            | Self::WithdrawInput { attempt, .. }
            | Self::ConfirmInput { attempt, .. }
            | Self::Status { attempt, .. }
            | Self::SaveResumeState { attempt, .. }
            | Self::Detach { attempt, .. }
            | Self::Heartbeat { attempt, .. }
            | Self::End { attempt, .. } => Some(*attempt),
            Self::ProvideInput(_)
            | Self::CancelNow
            | Self::RequestCancel { .. }
            | Self::Due
            | Self::Extend { .. }
            | Self::Claim { .. } => None,
        }
    }
}

impl Effect {
    /// Every effect that the state of `task` implies: what an engine does when another node has
    /// changed the task. An effect may be performed twice without harm.
    pub fn implied_by(task: &Task) -> Effects {
        if task.state.ending().is_some() {
            return AFTER_END.into();
        }
        let mut effects = PUBLISH.to_vec();
        effects.extend(task.input.responses.keys().cloned().map(Self::Deliver));
        effects.extend(task.cancel.map(|_| Self::NotifyCancel));
        effects.into()
    }
}

/// Makes the task await `requests`, or work if `requests` is empty.
fn wait_for(fields: &mut Fields, requests: Vec<(InputKey, InputRequest)>, now: Timestamp) {
    fields.state = match Outstanding::new(requests) {
        Some(outstanding) => State::AwaitingInput(outstanding),
        None => State::Working,
    };
    fields
        .lifetime
        .record_wait(matches!(fields.state, State::AwaitingInput(_)), now);
}

/// A copy of the outstanding input requests.
fn open_requests(fields: &Fields) -> Vec<(InputKey, InputRequest)> {
    match &fields.state {
        State::AwaitingInput(outstanding) => outstanding
            .iter()
            .map(|(key, request)| (key.clone(), request.clone()))
            .collect(),
        State::Working | State::Ended(_) => Vec::new(),
    }
}

const PUBLISH: &[Effect] = &[Effect::Publish];

/// The effects of an end.
const AFTER_END: &[Effect] = &[Effect::Publish, Effect::Wake, Effect::Stop];
