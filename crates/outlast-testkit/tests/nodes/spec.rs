//! One task as a sequence of single steps: the history of each task must be explained by one.

use outlast_testkit::nodes::{Call, Ending, Reply, Seen};
use stateright::semantics::SequentialSpec;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OneTask {
    Absent,
    Working,
    Asking,
    /// Its input request has a response.
    Answered,
    Ended(Ending),
}

impl SequentialSpec for OneTask {
    type Op = Call;
    type Ret = Reply;

    fn invoke(&mut self, call: &Call) -> Reply {
        match call {
            Call::Create => {
                *self = Self::Working;
                Reply::Done
            }
            Call::Get | Call::Wait => Reply::Seen(self.seen()),
            Call::Cancel => self.end(Ending::Cancelled),
            Call::Recover => self.end(Ending::Unknown),
            Call::Finish(value) => self.end(Ending::Result(*value)),
            Call::Ask => {
                if *self == Self::Working {
                    *self = Self::Asking;
                }
                Reply::Done
            }
            // A response at another time is ignored.
            Call::Answer(_) => {
                if *self == Self::Asking {
                    *self = Self::Answered;
                }
                Reply::Done
            }
        }
    }
}

impl OneTask {
    fn end(&mut self, ending: Ending) -> Reply {
        // P2: once, and final.
        if matches!(self, Self::Ended(_) | Self::Absent) {
            return Reply::Refused;
        }
        *self = Self::Ended(ending);
        Reply::Done
    }

    fn seen(&self) -> Seen {
        match self {
            Self::Absent => Seen::Nothing,
            Self::Working | Self::Answered => Seen::Working,
            Self::Asking => Seen::Asking,
            Self::Ended(ending) => Seen::Ended(ending.clone()),
        }
    }
}
