//! The state of a task. The status words of the protocol are computed from it and are not stored.

use crate::input::Outstanding;
use crate::outcome::Ending;

/// The state of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The work is running, or queued to run.
    Working,
    /// The work waits for responses to these input requests.
    AwaitingInput(Outstanding),
    /// The work has ended. This state is final.
    Ended(Ending),
}

impl State {
    /// How the task ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Ended(ending) => Some(*ending),
            Self::Working | Self::AwaitingInput(_) => None,
        }
    }
}
