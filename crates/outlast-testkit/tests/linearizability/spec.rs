//! One task, one step after the other: what every history of it must look like from outside.

use stateright::semantics::SequentialSpec;

/// A task that sends one input request and ends with the response, unless it is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OneTask {
    Absent,
    Working,
    Asking,
    /// The first answer that found it asking.
    Answered(u64),
    Ended(Outcome),
}

/// An operation on a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Create,
    Get,
    Wait,
    CancelNow,
    Answer(u64),
    /// The work sends an input request. No reply says when it is stored.
    Ask,
    /// The work ends. No reply says when that is stored.
    Finish(u64),
}

/// The reply to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Done,
    Refused,
    Seen(Seen),
}

/// How the task looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Seen {
    Nothing,
    Working,
    Asking,
    Ended(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Result(u64),
    Cancelled,
}

impl SequentialSpec for OneTask {
    type Op = Op;
    type Ret = Reply;

    fn invoke(&mut self, op: &Op) -> Reply {
        match op {
            Op::Create => {
                *self = Self::Working;
                Reply::Done
            }
            // The reply to a wait is an end. It matches only where the task has ended like that.
            Op::Get | Op::Wait => Reply::Seen(self.seen()),
            Op::CancelNow => self.end(Outcome::Cancelled),
            Op::Answer(value) => {
                // An answer that comes at another time is ignored.
                if *self == Self::Asking {
                    *self = Self::Answered(*value);
                }
                Reply::Done
            }
            Op::Ask => {
                if *self == Self::Working {
                    *self = Self::Asking;
                }
                Reply::Done
            }
            Op::Finish(value) => self.end(Outcome::Result(*value)),
        }
    }
}

impl OneTask {
    fn end(&mut self, outcome: Outcome) -> Reply {
        // P2: once, and final.
        if matches!(self, Self::Ended(_) | Self::Absent) {
            return Reply::Refused;
        }
        *self = Self::Ended(outcome);
        Reply::Done
    }

    fn seen(&self) -> Seen {
        match self {
            Self::Absent => Seen::Nothing,
            Self::Working | Self::Answered(_) => Seen::Working,
            Self::Asking => Seen::Asking,
            Self::Ended(outcome) => Seen::Ended(outcome.clone()),
        }
    }
}
