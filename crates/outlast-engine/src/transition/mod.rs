//! The only code that changes a task: one pure function from a task and a command to a [`Step`].
//!
//! Time comes in as an argument and consequences go out as [`Effect`]s. A step becomes true when a
//! store has committed it; until then nobody may act on it.

mod input;
mod cancel;
mod claim;
mod end;
mod expire;
mod report;

#[cfg(test)]
mod laws;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::{Raw, Timestamp};

use crate::input::{Answer, Outstanding, Question};
use crate::id::{AskKey, Attempt, NodeId};
use crate::outcome::{Message, Outcome};
use crate::task::{Fields, Handle, State, Task};

/// What may be done to a task.
#[derive(Clone, Debug)]
pub enum Command {
    /// The runner asks the caller a question.
    Ask {
        /// Who says so.
        attempt: Attempt,
        /// A fresh key.
        key: AskKey,
        /// The question.
        question: Question,
        /// How many questions a task may ask in its life.
        limit: usize,
    },
    /// The runner takes a question back.
    Withdraw {
        /// Who says so.
        attempt: Attempt,
        /// The question's key.
        key: AskKey,
    },
    /// The caller answers. Keys that are not outstanding are ignored.
    Answer(BTreeMap<AskKey, Answer>),
    /// The runner has used an answer; it need not be kept any longer.
    Confirm {
        /// Who says so.
        attempt: Attempt,
        /// The question's key.
        key: AskKey,
    },
    /// The runner says where it stands.
    Status {
        /// Who says so.
        attempt: Attempt,
        /// A sentence for people.
        message: Arc<str>,
    },
    /// The runner can find its work again after a restart.
    Attach {
        /// Who says so.
        attempt: Attempt,
        /// What it needs for that.
        handle: Handle,
    },
    /// The caller ends the task at once.
    CancelNow,
    /// The caller asks that the work stop; the task ends as cancelled at `deadline` at the latest.
    RequestCancel {
        /// When patience ends.
        deadline: Timestamp,
    },
    /// The work is over.
    End {
        /// Who says so.
        attempt: Attempt,
        /// How it ended.
        outcome: Outcome,
        /// The status message from then on, in place of the one that the outcome brings.
        message: Message,
    },
    /// A moment named by [`Task::due`] has come.
    Due,
    /// The task shall live until `ttl` milliseconds after its creation.
    Extend {
        /// The new TTL.
        ttl: u64,
    },
    /// Another engine takes the task over from an executor that is gone.
    Claim {
        /// The new executor.
        executor: NodeId,
        /// Whether the work goes on or starts again.
        how: Takeover,
    },
}

/// How a task goes on after its executor is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// The runner finds the work again by its handle; open questions stay.
    Reattach,
    /// The call starts from the beginning; open questions and unused answers are void.
    Rerun,
}

/// A change that is computed but not yet true.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What becomes of the task.
    pub next: Next,
    /// To be carried out after `next` is stored, never before.
    pub effects: Effects,
}

/// What becomes of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It is stored like this, with this body if it has just ended with one.
    Stored(Arc<Task>, Option<Raw>),
    /// It is removed.
    Removed,
}

/// What the world must be told once a [`Step`] is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell watchers that the task changed.
    Publish,
    /// Answer those who wait for the end.
    Wake,
    /// Hand the stored answer to the running work.
    Deliver(AskKey),
    /// Tell the running work that its caller wants it to stop.
    TellCancel,
    /// Stop the running work: nobody wants its outcome any more.
    Stop,
}

/// Effects in their order: those of most steps are always the same.
pub type Effects = Cow<'static, [Effect]>;

/// Why a command was not applied. The task is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The task is over.
    #[error("Cannot transition from terminal status: the task has already ended")]
    AlreadyEnded,
    /// The task's time is over.
    #[error("the task has expired")]
    Expired,
    /// Somebody else runs the task now.
    #[error("attempt {} was superseded by attempt {}", .given.0, .current.0)]
    Superseded {
        /// The attempt that spoke.
        given: Attempt,
        /// The attempt that counts.
        current: Attempt,
    },
    /// The key was used before in this task.
    #[error("input key {0} was already used in this task")]
    KeyReused(AskKey),
    /// The task has asked too often.
    #[error("a task may ask at most {limit} questions")]
    TooManyQuestions {
        /// The limit.
        limit: usize,
    },
    /// Nothing under these keys waits for an answer.
    #[error("no question waits under that key")]
    NotOutstanding,
    /// The moment has not come.
    #[error("nothing is due yet")]
    NotDue,
    /// The task asks to stop already, or the change would change nothing.
    #[error("nothing would change")]
    Unchanged,
}

impl Task {
    /// Computes what `command` would do at `now`. A task that others share stays as it is; one that nobody shares is
    /// changed where it stands, and is spoilt if the command is refused.
    pub fn apply(self: Arc<Self>, command: Command, now: Timestamp) -> Result<Step, Refused> {
        if let Command::Due = command {
            if self.is_gone(now) {
                return Ok(expire::removal());
            }
        } else {
            self.check(&command, now)?;
        }
        let mut next = self;
        let fields = Arc::make_mut(&mut next).fields();
        let Change { body, effects } = change(fields, command, now)?;
        // The clock of a task moves on, never back.
        fields.updated = fields.updated.max(now);
        fields.revision = fields.revision.next();
        Ok(Step {
            next: Next::Stored(next, body),
            effects,
        })
    }

    /// Whether anybody may still do that to the task.
    fn check(&self, command: &Command, now: Timestamp) -> Result<(), Refused> {
        // Nothing but its removal happens to a task whose time is over.
        if self.is_gone(now) {
            return Err(Refused::Expired);
        }
        if self.state.ending().is_some() && !matches!(command, Command::Extend { .. }) {
            return Err(Refused::AlreadyEnded);
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

/// What a command does beyond the fields it changes.
struct Change {
    body: Option<Raw>,
    effects: Effects,
}

impl From<Effects> for Change {
    fn from(effects: Effects) -> Self {
        Self {
            body: None,
            effects,
        }
    }
}

fn change(fields: &mut Fields, command: Command, now: Timestamp) -> Result<Change, Refused> {
    let effects = match command {
        Command::Due => return expire::due(fields, now),
        Command::CancelNow => return Ok(cancel::now(fields, now)),
        Command::End {
            outcome, message, ..
        } => return Ok(end::end(fields, outcome, message, now)),
        Command::Ask {
            key,
            question,
            limit,
            ..
        } => input::ask(fields, key, question, limit, now)?,
        Command::Withdraw { key, .. } => input::withdraw(fields, key, now)?,
        Command::Answer(answers) => input::answer(fields, answers, now)?,
        Command::Confirm { key, .. } => input::confirm(fields, &key)?,
        Command::Status { message, .. } => report::status(fields, message, now)?,
        Command::Attach { handle, .. } => report::attach(fields, handle, now),
        Command::RequestCancel { deadline } => cancel::request(fields, deadline, now)?,
        Command::Extend { ttl } => expire::extend(fields, ttl, now)?,
        Command::Claim { executor, how } => claim::claim(fields, executor, how, now),
    };
    Ok(effects.into())
}

impl Command {
    /// The attempt that speaks, where a runner does.
    fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Ask { attempt, .. }
            | Self::Withdraw { attempt, .. }
            | Self::Confirm { attempt, .. }
            | Self::Status { attempt, .. }
            | Self::Attach { attempt, .. }
            | Self::End { attempt, .. } => Some(*attempt),
            Self::Answer(_)
            | Self::CancelNow
            | Self::RequestCancel { .. }
            | Self::Due
            | Self::Extend { .. }
            | Self::Claim { .. } => None,
        }
    }
}

impl Effect {
    /// Every effect that a task in this state calls for: what an engine does that hears of a change
    /// made elsewhere. Each effect may be carried out twice without harm.
    pub fn implied_by(task: &Task) -> Effects {
        if task.state.ending().is_some() {
            return OVER.into();
        }
        let mut effects = PUBLISH.to_vec();
        effects.extend(task.asked.answers.keys().cloned().map(Self::Deliver));
        effects.extend(task.cancel.map(|_| Self::TellCancel));
        effects.into()
    }
}

/// Lets the task wait for `questions`, or work if there are none.
fn wait_for(fields: &mut Fields, questions: Vec<(AskKey, Question)>, now: Timestamp) {
    fields.state = match Outstanding::new(questions) {
        Some(outstanding) => State::AwaitingInput(outstanding),
        None => State::Working,
    };
    fields
        .lifetime
        .note_wait(matches!(fields.state, State::AwaitingInput(_)), now);
}

/// The outstanding questions, to be changed.
fn questions(fields: &Fields) -> Vec<(AskKey, Question)> {
    match &fields.state {
        State::AwaitingInput(outstanding) => outstanding
            .iter()
            .map(|(key, question)| (key.clone(), question.clone()))
            .collect(),
        State::Working | State::Ended(_) => Vec::new(),
    }
}

const PUBLISH: &[Effect] = &[Effect::Publish];

/// What an end calls for.
const OVER: &[Effect] = &[Effect::Publish, Effect::Wake, Effect::Stop];
