//! How a task stands, by whatever way that was learned.

use outlast_wire::v2::{Ask, DetailedTask, Payload};
use outlast_wire::{PeerTask, Raw};

/// A task as a server showed it.
#[derive(Clone, Debug)]
pub(crate) struct TaskReport {
    pub(crate) task: PeerTask,
    pub(crate) payload: ReportPayload,
}

/// What the server showed besides.
#[derive(Clone, Debug)]
pub(crate) enum ReportPayload {
    /// In this generation outcome and questions come by ways of their own: V1.
    FetchSeparately,
    /// Nothing: the task works, was cancelled, or was shown in brief.
    None,
    InputRequests(Vec<Ask>),
    Result(Raw),
    Error(Raw),
}

impl TaskReport {
    /// A V1 task.
    pub(crate) fn plain(task: PeerTask) -> Self {
        Self {
            task,
            payload: ReportPayload::FetchSeparately,
        }
    }

    /// A V2 task without its payload.
    pub(crate) fn brief(task: PeerTask) -> Self {
        Self {
            task,
            payload: ReportPayload::None,
        }
    }
}

impl From<DetailedTask> for TaskReport {
    fn from(detailed: DetailedTask) -> Self {
        Self {
            task: detailed.task,
            payload: match detailed.payload {
                Payload::Nothing => ReportPayload::None,
                Payload::Asks(asks) => ReportPayload::InputRequests(asks),
                Payload::Result(result) => ReportPayload::Result(result),
                Payload::Error(error) => ReportPayload::Error(error),
            },
        }
    }
}
