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
pub(super) struct ScriptStep {
    pub(super) before: Task,
    pub(super) command: Command,
    pub(super) now: Timestamp,
    pub(super) reply: Result<Step, Refused>,
}

impl ScriptStep {
    /// The task before and after, if the command was applied and did not remove it.
    pub(super) fn stored(&self) -> Option<(&Task, &Task)> {
        match &self.reply {
            Ok(Step {
                next: Next::Stored(next, _),
                ..
            }) => Some((&self.before, next)),
            _ => None,
        }
    }
}

/// The events of one history, up to the removal of the task if there is one.
pub(super) fn history() -> impl Strategy<Value = Vec<ScriptStep>> {
    (lifetime(), vec((action(), tick()), 0..60)).prop_map(|(lifetime, script)| {
        let mut task = Task::new(
            NewTask {
                lifetime,
                ..fixtures::new_task(1)
            },
            fixtures::CREATED,
        );
        let mut now = fixtures::CREATED;
        let mut events = Vec::new();
        for (action, tick) in script {
            now = tick.after(now, &task);
            let command = action.by(&task, now);
            let reply = Arc::new(task.clone()).apply(command.clone(), now);
            let next = reply.as_ref().ok().map(|step| step.next.clone());
            let before = task.clone();
            events.push(ScriptStep {
                before,
                command,
                now,
                reply,
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
pub(super) enum CommandTemplate {
    RequestInput(u8, AttemptChoice),
    WithdrawInput(u8, AttemptChoice),
    ProvideInput(Vec<u8>),
    ConfirmInput(u8, AttemptChoice),
    Status(u8, AttemptChoice),
    SaveResumeState(AttemptChoice),
    CancelNow,
    RequestCancel { after: u64 },
    End(Outcome, AttemptChoice),
    Due,
    Extend { ttl: u64 },
    Claim(Takeover),
}

/// Which attempt sends the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttemptChoice {
    Current,
    Earlier,
    Later,
}

/// The maximum number of input requests of a task here. It is smaller than the number of keys.
pub(super) const MAX_INPUT_REQUESTS: usize = 8;

impl CommandTemplate {
    pub(super) fn by(self, task: &Task, now: Timestamp) -> Command {
        let attempt = |attempt_choice| match attempt_choice {
            AttemptChoice::Current => task.attempt,
            AttemptChoice::Earlier => Attempt(task.attempt.0 - 1),
            AttemptChoice::Later => task.attempt.next(),
        };
        match self {
            Self::RequestInput(n, attempt_choice) => Command::RequestInput {
                attempt: attempt(attempt_choice),
                key: key(n),
                request: fixtures::input_request(),
                limit: MAX_INPUT_REQUESTS,
            },
            Self::WithdrawInput(n, attempt_choice) => Command::WithdrawInput {
                attempt: attempt(attempt_choice),
                key: key(n),
            },
            Self::ProvideInput(keys) => {
                let answer = |n: u8| (key(n), fixtures::input_response(&n.to_string()));
                Command::ProvideInput(keys.into_iter().map(answer).collect())
            }
            Self::ConfirmInput(n, attempt_choice) => Command::ConfirmInput {
                attempt: attempt(attempt_choice),
                key: key(n),
            },
            Self::Status(n, attempt_choice) => Command::Status {
                attempt: attempt(attempt_choice),
                message: format!("page {n}").into(),
            },
            Self::SaveResumeState(attempt_choice) => Command::SaveResumeState {
                attempt: attempt(attempt_choice),
                state: ResumeState(Arc::from(*b"handle")),
            },
            Self::CancelNow => Command::CancelNow,
            Self::RequestCancel { after } => Command::RequestCancel {
                deadline: now.plus(after),
            },
            Self::End(outcome, attempt_choice) => Command::End {
                attempt: attempt(attempt_choice),
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

fn action() -> impl Strategy<Value = CommandTemplate> {
    let n = || 0u8..12;
    prop_oneof![
        8 => (n(), attempt_choice()).prop_map(|(n, attempt_choice)| CommandTemplate::RequestInput(n, attempt_choice)),
        3 => (n(), attempt_choice()).prop_map(|(n, attempt_choice)| CommandTemplate::WithdrawInput(n, attempt_choice)),
        6 => vec(n(), 0..4).prop_map(CommandTemplate::ProvideInput),
        3 => (n(), attempt_choice()).prop_map(|(n, attempt_choice)| CommandTemplate::ConfirmInput(n, attempt_choice)),
        4 => (n(), attempt_choice()).prop_map(|(n, attempt_choice)| CommandTemplate::Status(n, attempt_choice)),
        2 => attempt_choice().prop_map(CommandTemplate::SaveResumeState),
        1 => Just(CommandTemplate::CancelNow),
        2 => (0u64..9_000).prop_map(|after| CommandTemplate::RequestCancel { after }),
        1 => (outcome(), attempt_choice()).prop_map(|(outcome, attempt_choice)| CommandTemplate::End(outcome, attempt_choice)),
        6 => Just(CommandTemplate::Due),
        2 => (1u64..30_000).prop_map(|ttl| CommandTemplate::Extend { ttl }),
        2 => prop_oneof![Just(Takeover::Rerun), Just(Takeover::Reattach)].prop_map(CommandTemplate::Claim),
    ]
}

fn attempt_choice() -> impl Strategy<Value = AttemptChoice> {
    prop_oneof![
        8 => Just(AttemptChoice::Current),
        1 => Just(AttemptChoice::Earlier),
        1 => Just(AttemptChoice::Later),
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
