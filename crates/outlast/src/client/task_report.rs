//! How a task stands, by whatever way that was learned.

use outlast_wire::v2::{Ask, DetailedTask, Payload};
use outlast_wire::{PeerTask, Raw};

/// A task as a server showed it.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) task: PeerTask,
    pub(crate) brings: Brings,
}

/// What the server showed besides.
#[derive(Clone, Debug)]
pub(crate) enum Brings {
    /// In this generation outcome and questions come by ways of their own: V1.
    Elsewhere,
    /// Nothing: the task works, was cancelled, or was shown in brief.
    Nothing,
    Asks(Vec<Ask>),
    Result(Raw),
    Error(Raw),
}

impl Sight {
    /// A V1 task.
    pub(crate) fn plain(task: PeerTask) -> Self {
        Self {
            task,
            brings: Brings::Elsewhere,
        }
    }

    /// A V2 task without its payload.
    pub(crate) fn brief(task: PeerTask) -> Self {
        Self {
            task,
            brings: Brings::Nothing,
        }
    }
}

impl From<DetailedTask> for Sight {
    fn from(detailed: DetailedTask) -> Self {
        Self {
            task: detailed.task,
            brings: match detailed.payload {
                Payload::Nothing => Brings::Nothing,
                Payload::Asks(asks) => Brings::Asks(asks),
                Payload::Result(result) => Brings::Result(result),
                Payload::Error(error) => Brings::Error(error),
            },
        }
    }
}
