//! A server's report of a task, from a create result, a poll or a notification.

use outlast_wire::v2::{DetailedTask, InputRequestEntry, Payload};
use outlast_wire::{PeerTask, Raw};

/// A server's report of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskReport {
    pub(crate) task: PeerTask,
    pub(crate) payload: ReportPayload,
}

/// The payload of the report.
#[derive(Clone, Debug)]
pub(crate) enum ReportPayload {
    /// V1: the outcome and the input requests are fetched separately.
    FetchSeparately,
    /// No payload: the task works or was cancelled, or the report has only the task.
    None,
    InputRequests(Vec<InputRequestEntry>),
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

    /// A V2 task without a payload.
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
                Payload::InputRequests(asks) => ReportPayload::InputRequests(asks),
                Payload::Result(result) => ReportPayload::Result(result),
                Payload::Error(error) => ReportPayload::Error(error),
            },
        }
    }
}
