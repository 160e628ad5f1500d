//! One task, one step after the other: what every history of it must look like from outside.

use stateright::semantics::SequentialSpec;

/// A task that asks one question and ends with the answer, unless it is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OneTask {
    Absent,
    Working,
    Asking,
    /// The first answer that found it asking.
    Answered(u64),
    Ended(Outcome),
}

/// What somebody does to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Create,
    Get,
    Wait,
    CancelNow,
    Answer(u64),
    /// The work asks. Nobody is told when that is stored.
    Ask,
    /// The work ends. Nobody is told when that is stored.
    Finish(u64),
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
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
    type Ret = Told;

    fn invoke(&mut self, op: &Op) -> Told {
        match op {
            Op::Create => {
                *self = Self::Working;
                Told::Done
            }
            // Whoever waits is told an end: it matches where the task has ended like that, and nowhere else.
            Op::Get | Op::Wait => Told::Seen(self.seen()),
            Op::CancelNow => self.end(Outcome::Cancelled),
            Op::Answer(value) => {
                // An answer that comes at another time is ignored.
                if *self == Self::Asking {
                    *self = Self::Answered(*value);
                }
                Told::Done
            }
            Op::Ask => {
                if *self == Self::Working {
                    *self = Self::Asking;
                }
                Told::Done
            }
            Op::Finish(value) => self.end(Outcome::Result(*value)),
        }
    }
}

impl OneTask {
    fn end(&mut self, outcome: Outcome) -> Told {
        // P2: once, for ever.
        if matches!(self, Self::Ended(_) | Self::Absent) {
            return Told::Refused;
        }
        *self = Self::Ended(outcome);
        Told::Done
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
