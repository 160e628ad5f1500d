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
    Ended(EndState),
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
pub(crate) enum OpResult {
    Done,
    Refused,
    Observed(Observation),
}

/// What a read of the task returned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Observation {
    Nothing,
    Working,
    Asking,
    Ended(EndState),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EndState {
    Result(u64),
    Cancelled,
}

impl SequentialSpec for OneTask {
    type Op = Op;
    type Ret = OpResult;

    fn invoke(&mut self, op: &Op) -> OpResult {
        match op {
            Op::Create => {
                *self = Self::Working;
                OpResult::Done
            }
            // The reply to a wait is an end. It matches only where the task has ended like that.
            Op::Get | Op::Wait => OpResult::Observed(self.observe()),
            Op::CancelNow => self.end(EndState::Cancelled),
            Op::Answer(value) => {
                // An answer that comes at another time is ignored.
                if *self == Self::Asking {
                    *self = Self::Answered(*value);
                }
                OpResult::Done
            }
            Op::Ask => {
                if *self == Self::Working {
                    *self = Self::Asking;
                }
                OpResult::Done
            }
            Op::Finish(value) => self.end(EndState::Result(*value)),
        }
    }
}

impl OneTask {
    fn end(&mut self, outcome: EndState) -> OpResult {
        // P2: once, and final.
        if matches!(self, Self::Ended(_) | Self::Absent) {
            return OpResult::Refused;
        }
        *self = Self::Ended(outcome);
        OpResult::Done
    }

    fn observe(&self) -> Observation {
        match self {
            Self::Absent => Observation::Nothing,
            Self::Working | Self::Answered(_) => Observation::Working,
            Self::Asking => Observation::Asking,
            Self::Ended(outcome) => Observation::Ended(outcome.clone()),
        }
    }
}
