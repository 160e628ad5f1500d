//! What a node reports, one JSON text per line.

use std::io::Write;

use outlast_engine::engine::EndedTask;
use outlast_engine::{Ending as TaskEnding, TaskId};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds on the monotonic clock of the machine.
    pub at: u64,
    /// The task.
    pub task: String,
    /// What happened.
    pub report: Report,
}

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// A task was acknowledged. Its creation began at `begun`.
    Created {
        /// The time on the monotonic clock.
        begun: u64,
        /// What its call does.
        kind: TaskKind,
    },
    /// The runner was called for this attempt.
    Started {
        /// The attempt.
        attempt: u32,
    },
    /// An operation begins. No other operation of the process has this number.
    Invoked(u64, Call),
    /// The reply to an operation. An operation without a reply may have taken place.
    Returned(u64, Reply),
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskKind {
    /// It must not run twice.
    Once,
    /// It may run again.
    Repeatable,
    /// It sends an input request and returns the response. It must not run twice.
    Ask,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Call {
    /// A task is stored.
    Create,
    /// Reads the task.
    Get,
    /// Waits for the end.
    Wait,
    /// Cancels at once.
    Cancel,
    /// Provides this input response.
    Answer(u64),
    /// The work sends its input request.
    Ask,
    /// The work ends with this result.
    Finish(u64),
    /// Recovery ends the task with an unknown outcome.
    Recover,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// It was done.
    Done,
    /// The task had ended.
    Refused,
    /// The task looked like this.
    Seen(Seen),
}

/// How a task looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Seen {
    /// It is not found.
    Nothing,
    /// It works.
    Working,
    /// It awaits input.
    Asking,
    /// It has ended.
    Ended(Ending),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// With this result.
    Result(u64),
    /// It was cancelled.
    Cancelled,
    /// With the error for an unknown outcome.
    Unknown,
}

impl Line {
    /// Writes a line. It is complete, unless the process dies while it is written.
    pub fn write(task: TaskId, report: Report) {
        Self::write_at(now(), task, report);
    }

    fn write_at(at: u64, task: TaskId, report: Report) {
        let line = Self {
            at,
            task: task.to_string(),
            report,
        };
        let mut text = serde_json::to_vec(&line).expect("numbers and words are JSON");
        text.push(b'\n');
        let mut out = std::io::stdout().lock();
        // The test reads until the end of the process.
        out.write_all(&text)
            .and_then(|()| out.flush())
            .expect("the test reads the output");
    }
}

impl Ending {
    /// How this task ended.
    pub fn of(ended: &EndedTask) -> Self {
        match (ended.summary.ending, &ended.body) {
            (TaskEnding::Result, Some(body)) => {
                Self::Result(body.as_str().parse().expect("results are numbers"))
            }
            (TaskEnding::Cancelled, _) => Self::Cancelled,
            (TaskEnding::Error(_), _) => Self::Unknown,
            other => panic!("no call ends like that: {other:?}"),
        }
    }
}

/// Nanoseconds on the monotonic clock.
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
