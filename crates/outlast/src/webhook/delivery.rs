//! One delivery: its stored record, and the body of its request.

use outlast_engine::Task;
use outlast_engine::store::{Record, RecordKey, Status};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Webhook;

/// A status change that a receiver has not accepted yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Delivery {
    /// The name of the webhook.
    pub(super) webhook: String,
    task: String,
    revision: u64,
    status: String,
    message: Option<String>,
    server: String,
    tool: Option<String>,
    /// As in logs: of a session it shows a digest, because the id gives access.
    owner: String,
    created_ms: u64,
    updated_ms: u64,
    /// When the next attempt is due.
    pub(super) due_ms: u64,
    /// How many attempts have begun.
    pub(super) attempts: u32,
}

impl Delivery {
    pub(super) fn new(webhook: &Webhook, task: &Task) -> Self {
        let runner = &*task.origin.runner;
        Self {
            webhook: webhook.name.to_string(),
            task: task.id.to_string(),
            revision: u64::from(task.revision.0),
            status: Status::of_task(task).word().to_owned(),
            message: task.message.as_deref().map(str::to_owned),
            server: runner
                .strip_prefix("upstream:")
                .unwrap_or(runner)
                .to_owned(),
            tool: task.origin.tool.as_deref().map(str::to_owned),
            owner: task.owner.to_string(),
            created_ms: task.created.0,
            updated_ms: task.updated.0,
            due_ms: task.updated.0,
            attempts: 0,
        }
    }

    pub(super) fn parse(record: &Record) -> Option<Self> {
        serde_json::from_slice(&record.bytes).ok()
    }

    /// The record of this delivery. It expires when the delivery is given up.
    pub(super) fn record(&self) -> Record {
        let key = format!("{}/{}/{}", self.webhook, self.task, self.revision);
        let bytes = serde_json::to_vec(self).expect("strings and numbers are JSON");
        Record {
            key: RecordKey::new(KIND, key),
            owner: None,
            expires: Some(self.given_up()),
            bytes: bytes.into(),
        }
    }

    /// When the delivery is given up.
    pub(super) fn given_up(&self) -> Timestamp {
        Timestamp(self.updated_ms).plus(MAX_AGE_MS)
    }

    /// The id of the event. It is the same in each attempt.
    pub(super) fn id(&self) -> String {
        format!("evt_{}_{}", self.task, self.revision)
    }

    /// The body of the request, with a link to the task on the page at `public_url`.
    pub(super) fn body(&self, public_url: &str) -> String {
        let body = json!({
            "type": format!("task.{}", self.status),
            "timestamp": Timestamp(self.updated_ms).to_string(),
            "data": {
                "taskId": self.task,
                "revision": self.revision,
                "status": self.status,
                "statusMessage": self.message,
                "server": self.server,
                "tool": self.tool,
                "owner": self.owner,
                "createdAt": Timestamp(self.created_ms).to_string(),
                "url": format!("{}/tasks/{}", public_url.trim_end_matches('/'), self.task),
            },
        });
        body.to_string()
    }
}

/// The kind of the records.
pub(super) const KIND: &str = "webhook";

/// A delivery that no receiver has accepted is given up after three days.
const MAX_AGE_MS: u64 = 3 * 24 * 3_600_000;
