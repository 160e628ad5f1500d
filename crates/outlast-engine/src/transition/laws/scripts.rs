//! Random histories: a script of actions, applied to a task with a clock that may go back.

use std::sync::Arc;

use outlast_wire::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::id::{Attempt, InputKey, NodeId};
use crate::laws::fixtures;
use crate::outcome::{ErrorCode, Outcome};
use crate::task::{Lifetime, NewTask, ResumeState, Task, TtlPolicy};
use crate::transition::{Command, Next, Refused, Step, Takeover};

/// One command and its result.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) before: Task,
    pub(super) command: Command,
    pub(super) now: Timestamp,
    pub(super) told: Result<Step, Refused>,
}

impl Event {
    /// The task before and after, if the command was applied and did not remove it.
    pub(super) fn stored(&self) -> Option<(&Task, &Task)> {
        match &self.told {
            Ok(Step {
                next: Next::Stored(next, _),
                ..
            }) => Some((&self.before, next)),
            _ => None,
        }
    }
}

/// The events of one history, up to the removal of the task if there is one.
pub(super) fn life() -> impl Strategy<Value = Vec<Event>> {
    (lifetime(), vec((deed(), tick()), 0..60)).prop_map(|(lifetime, script)| {
        let mut task = Task::new(
            NewTask {
                lifetime,
                ..fixtures::new_task(1)
            },
            fixtures::CREATED,
        );
        let mut now = fixtures::CREATED;
        let mut events = Vec::new();
        for (deed, tick) in script {
            now = tick.after(now, &task);
            let command = deed.by(&task, now);
            let told = Arc::new(task.clone()).apply(command.clone(), now);
            let next = told.as_ref().ok().map(|step| step.next.clone());
            let before = task.clone();
            events.push(Event {
                before,
                command,
                now,
                told,
            });
            match next {
                Some(Next::Removed) => break,
                Some(Next::Stored(next, _)) => task = Arc::unwrap_or_clone(next),
                None => {}
            }
        }
        events
    })
}

/// Any lifetime, short enough that a script reaches its end.
pub(super) fn lifetime() -> impl Strategy<Value = Lifetime> {
    let keep = prop_oneof![Just(TtlPolicy::Strict), Just(TtlPolicy::KeepLive)];
    (1u64..20_000, keep, proptest::option::of(0u64..20_000))
        .prop_map(|(ttl, keep, run_limit)| Lifetime::new(ttl, keep, run_limit))
}

/// A command without the parts that depend on the task.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Ask(u8, Voice),
    Withdraw(u8, Voice),
    Answer(Vec<u8>),
    Confirm(u8, Voice),
    Status(u8, Voice),
    Attach(Voice),
    CancelNow,
    RequestCancel { after: u64 },
    End(Outcome, Voice),
    Due,
    Extend { ttl: u64 },
    Claim(Takeover),
}

/// Which attempt sends the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Voice {
    Current,
    Earlier,
    Later,
}

/// The maximum number of input requests of a task here. It is smaller than the number of keys.
pub(super) const QUESTIONS: usize = 8;

impl Deed {
    pub(super) fn by(self, task: &Task, now: Timestamp) -> Command {
        let attempt = |voice| match voice {
            Voice::Current => task.attempt,
            Voice::Earlier => Attempt(task.attempt.0 - 1),
            Voice::Later => task.attempt.next(),
        };
        match self {
            Self::Ask(n, voice) => Command::RequestInput {
                attempt: attempt(voice),
                key: key(n),
                request: fixtures::input_request(),
                limit: QUESTIONS,
            },
            Self::Withdraw(n, voice) => Command::WithdrawInput {
                attempt: attempt(voice),
                key: key(n),
            },
            Self::Answer(keys) => {
                let answer = |n: u8| (key(n), fixtures::input_response(&n.to_string()));
                Command::ProvideInput(keys.into_iter().map(answer).collect())
            }
            Self::Confirm(n, voice) => Command::ConfirmInput {
                attempt: attempt(voice),
                key: key(n),
            },
            Self::Status(n, voice) => Command::Status {
                attempt: attempt(voice),
                message: format!("page {n}").into(),
            },
            Self::Attach(voice) => Command::SaveResumeState {
                attempt: attempt(voice),
                state: ResumeState(Arc::from(*b"handle")),
            },
            Self::CancelNow => Command::CancelNow,
            Self::RequestCancel { after } => Command::RequestCancel {
                deadline: now.plus(after),
            },
            Self::End(outcome, voice) => Command::End {
                attempt: attempt(voice),
                outcome,
                message: None,
            },
            Self::Due => Command::Due,
            Self::Extend { ttl } => Command::Extend { ttl },
            Self::Claim(how) => Command::Claim {
                executor: NodeId(u64::from(task.attempt.0) + 1),
                how,
            },
        }
    }
}

fn key(n: u8) -> InputKey {
    InputKey::new(format!("k{n}"))
}

fn deed() -> impl Strategy<Value = Deed> {
    let n = || 0u8..12;
    prop_oneof![
        8 => (n(), voice()).prop_map(|(n, voice)| Deed::Ask(n, voice)),
        3 => (n(), voice()).prop_map(|(n, voice)| Deed::Withdraw(n, voice)),
        6 => vec(n(), 0..4).prop_map(Deed::Answer),
        3 => (n(), voice()).prop_map(|(n, voice)| Deed::Confirm(n, voice)),
        4 => (n(), voice()).prop_map(|(n, voice)| Deed::Status(n, voice)),
        2 => voice().prop_map(Deed::Attach),
        1 => Just(Deed::CancelNow),
        2 => (0u64..9_000).prop_map(|after| Deed::RequestCancel { after }),
        1 => (outcome(), voice()).prop_map(|(outcome, voice)| Deed::End(outcome, voice)),
        6 => Just(Deed::Due),
        2 => (1u64..30_000).prop_map(|ttl| Deed::Extend { ttl }),
        2 => prop_oneof![Just(Takeover::Rerun), Just(Takeover::Reattach)].prop_map(Deed::Claim),
    ]
}

fn voice() -> impl Strategy<Value = Voice> {
    prop_oneof![
        8 => Just(Voice::Current),
        1 => Just(Voice::Earlier),
        1 => Just(Voice::Later),
    ]
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(fixtures::result("1")),
        Just(Outcome::ToolError(
            fixtures::raw("2"),
            Some("no paper".into())
        )),
        Just(Outcome::error(ErrorCode(-32_603), "no ink")),
        Just(Outcome::Cancelled),
    ]
}

/// How the clock moves between two actions.
#[derive(Clone, Copy, Debug)]
enum Tick {
    On(u64),
    Back(u64),
    /// To the deadline of the task, plus or minus this.
    ToDue(i64),
}

impl Tick {
    fn after(self, now: Timestamp, task: &Task) -> Timestamp {
        match self {
            Self::On(millis) => now.plus(millis),
            Self::Back(millis) => Timestamp(now.0.saturating_sub(millis)),
            Self::ToDue(by) => Timestamp(task.due().0.saturating_add_signed(by)),
        }
    }
}

fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![
        12 => (0u64..1_500).prop_map(Tick::On),
        2 => (0u64..5_000).prop_map(Tick::Back),
        1 => Just(Tick::Back(fixtures::CREATED.0)),
        3 => (-1i64..=1).prop_map(Tick::ToDue),
    ]
}
