//! Where a task stands. The wire's status words are computed from this and stored nowhere beside it.

use crate::input::Outstanding;
use crate::outcome::Ending;

/// Where a task stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The work is running, or queued to run.
    Working,
    /// The work waits for every question listed here.
    AwaitingInput(Outstanding),
    /// The work is over; nothing moves a task out of this state.
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
