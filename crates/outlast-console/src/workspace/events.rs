//! What changed in a workspace.

use outlast::client::ConnectionName;
use serde::Serialize;

use super::call::CallId;
use super::pending::PendingId;

/// A change of a workspace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkspaceEvent {
    /// A sampling request waits (S1-88).
    NewPendingSample(PendingId),
    /// An elicitation waits (S1-88).
    NewPendingElicitation(PendingId),
    /// An input request no longer waits.
    PendingRemoved(PendingId),
    /// The status of a task that was requested here has changed (S4-56).
    TaskStatus(TaskStatusEvent),
    /// A call has changed.
    Call(CallId),
    /// The tasks that are hosted for servers have changed.
    Hosted,
    /// A connection was added, removed, or has changed.
    Connection(ConnectionName),
    /// The tools of a server have changed.
    Tools(ConnectionName),
    /// Messages have passed.
    Traffic,
}

/// The event `mcpTaskStatus`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusEvent {
    /// The name of the server.
    pub server: String,
    /// Where the connection is configured.
    pub source: String,
    /// The id of the task.
    pub task_id: String,
    /// Its status word.
    pub status: &'static str,
    /// Its status message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// What people see instead of a status message that is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_message: Option<String>,
    /// The progress so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The end of the progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Grows with every change of the call.
    pub revision: u64,
}

impl WorkspaceEvent {
    /// The name of the event on a page.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NewPendingSample(_) => "newPendingSample",
            Self::NewPendingElicitation(_) => "newPendingElicitation",
            Self::PendingRemoved(_) => "pendingRemoved",
            Self::TaskStatus(_) => "mcpTaskStatus",
            Self::Call(_) => "callChanged",
            Self::Hosted => "hostedTasksChanged",
            Self::Connection(_) => "connectionChanged",
            Self::Tools(_) => "toolsChanged",
            Self::Traffic => "trafficChanged",
        }
    }

    /// The data of the event on a page.
    pub fn data(&self) -> serde_json::Value {
        let connection = |name: &ConnectionName| serde_json::json!({ "server": &*name.server, "source": &*name.source });
        match self {
            Self::NewPendingSample(id)
            | Self::NewPendingElicitation(id)
            | Self::PendingRemoved(id) => {
                serde_json::json!({ "id": id.to_string() })
            }
            Self::TaskStatus(status) => serde_json::to_value(status).unwrap_or_default(),
            Self::Call(id) => serde_json::json!({ "id": id.0 }),
            Self::Connection(name) | Self::Tools(name) => connection(name),
            Self::Hosted | Self::Traffic => serde_json::json!({}),
        }
    }
}
