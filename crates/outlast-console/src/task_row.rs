//! A task as the pages, the API and the events show it.

use outlast_engine::engine::Progress;
use outlast_engine::store::{Snapshot, Status};
use outlast_engine::{Engine, Owner};
use outlast_wire::Timestamp;
use serde::Serialize;

use crate::format;
use crate::status_text;

/// What is shown of a task without opening its bodies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskRow {
    /// Names the row among rows of every origin.
    #[serde(skip)]
    pub(crate) key: String,
    /// The page of the task below the base, if it has one.
    #[serde(skip)]
    pub(crate) path: Option<String>,
    pub(crate) task_id: String,
    /// The server: the name of its runner.
    pub(crate) server: String,
    /// Where the task is kept: `store`, or the place that configures the connection.
    pub(crate) source: String,
    pub(crate) origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(serialize_with = "word")]
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_message: Option<String>,
    /// What people see instead of a status message that is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) display_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<f64>,
    pub(crate) revision: u64,
    pub(crate) owner: String,
    #[serde(serialize_with = "rfc3339")]
    pub(crate) created_at: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    pub(crate) last_updated_at: Timestamp,
    /// Milliseconds from the creation to the expiry, if the task has a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u64>,
    /// Milliseconds; reported while the task is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) poll_interval: Option<u64>,
}

/// Who keeps a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// The store of this program.
    Store,
    /// A server, for a call of the viewer.
    Requested,
    /// The client of the viewer, for a server.
    Hosted,
}

impl Origin {
    pub(crate) const ALL: [Self; 3] = [Self::Store, Self::Requested, Self::Hosted];

    /// The word of the search language.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Requested => "requested",
            Self::Hosted => "hosted",
        }
    }

    /// The word for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Store => "Store",
            Self::Requested => "Requested",
            Self::Hosted => "Hosted",
        }
    }

    /// What the word means.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Store => "a task in the store of this program",
            Self::Requested => "a task at a server, requested by one of your calls",
            Self::Hosted => "a task that a server created at your client",
        }
    }
}

impl TaskRow {
    /// The row of a stored task, with the progress of its work if that runs here.
    pub(crate) fn of(engine: &Engine, task: &Snapshot) -> Self {
        let progress = task.ending().is_none().then(|| engine.progress(task.id()));
        Self::with_progress(task, progress.flatten().as_ref(), engine.now())
    }

    fn with_progress(task: &Snapshot, progress: Option<&Progress>, now: Timestamp) -> Self {
        let id = task.id().text();
        let (updated, ttl, poll_interval) = match task {
            Snapshot::Open(task) => (
                task.updated,
                task.lifetime.ttl_ms,
                task.view(&id, now).poll_interval_ms,
            ),
            Snapshot::Ended(summary) => (summary.updated, summary.ttl_ms, None),
        };
        Self {
            key: task.id().to_string(),
            path: Some(format!("/tasks/{}", task.id())),
            task_id: task.id().to_string(),
            server: server_name(task.runner()).to_owned(),
            source: "store".to_owned(),
            origin: Origin::Store,
            tool: task.tool().map(str::to_owned),
            status: Status::of(task),
            status_message: task.message().map(str::to_owned),
            display_message: task.message().and_then(status_text::replacement),
            progress: progress.map(|progress| progress.done),
            total: progress.and_then(|progress| progress.total),
            revision: task.revision().0.into(),
            owner: owner_name(task.owner()),
            created_at: task.created(),
            last_updated_at: updated,
            ttl: Some(ttl),
            poll_interval,
        }
    }

    /// Whether the task has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status, Status::Working | Status::InputRequired)
    }

    /// The status word for people.
    pub(crate) fn label(&self) -> &'static str {
        label(self.status)
    }

    /// When the task expires. An open task of a gateway may live longer.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.ttl.map(|ttl| self.created_at.plus(ttl))
    }

    /// The status message as a text for people.
    pub(crate) fn message(&self) -> Option<&str> {
        let shown = self.display_message.as_deref();
        shown.or(self.status_message.as_deref())
    }

    /// Whether the row is about a task of the store.
    pub(crate) fn is_stored(&self) -> bool {
        self.origin == Origin::Store
    }

    /// The poll interval as a text.
    pub(crate) fn poll_text(&self) -> Option<String> {
        self.poll_interval.map(format::interval)
    }

    /// The tool, or what the task runs instead.
    pub(crate) fn name(&self) -> &str {
        self.tool.as_deref().unwrap_or("(no tool)")
    }

    /// The start of the id.
    pub(crate) fn short_id(&self) -> &str {
        self.task_id.get(..10).unwrap_or(&self.task_id)
    }

    /// How long the task ran: until its end, or until `now`.
    pub(crate) fn elapsed(&self, now: &Timestamp) -> String {
        let until = if self.is_open() {
            *now
        } else {
            self.last_updated_at
        };
        format::duration(until.since(self.created_at))
    }

    /// The time until the expiry.
    pub(crate) fn expires_in(&self, now: &Timestamp) -> String {
        match self.expires() {
            None => "no limit".to_owned(),
            Some(expires) if expires <= *now => "expired".to_owned(),
            Some(expires) => format::duration(expires.since(*now)),
        }
    }

    /// The TTL in milliseconds; 0 without a limit.
    pub(crate) fn ttl_ms(&self) -> u64 {
        self.ttl.unwrap_or_default()
    }

    /// The TTL as a text.
    pub(crate) fn ttl_text(&self) -> String {
        self.ttl.map(format::duration).unwrap_or_default()
    }

    /// The time since the end.
    pub(crate) fn ended_ago(&self, now: &Timestamp) -> String {
        format::duration(now.since(self.last_updated_at))
    }

    /// The server as a value of the search language.
    pub(crate) fn server_value(&self) -> String {
        if self.server.contains(char::is_whitespace) {
            format!("\"{}\"", self.server)
        } else {
            self.server.clone()
        }
    }
}

/// The status word for people, as in the indicator.
pub(crate) fn label(status: Status) -> &'static str {
    match status {
        Status::Working => "Working",
        Status::InputRequired => "Input Required",
        Status::Completed => "Completed",
        Status::Failed => "Failed",
        Status::Cancelled => "Cancelled",
    }
}

/// The server of a runner: `NAME` if the runner is named `KIND:NAME`.
pub(crate) fn server_name(runner: &str) -> &str {
    runner.split_once(':').map_or(runner, |(_, name)| name)
}

/// The name of an owner. The id of a session gives access, so only its digest is shown.
pub(crate) fn owner_name(owner: &Owner) -> String {
    match owner {
        Owner::Principal(name) => name.to_string(),
        other => other.to_string(),
    }
}

fn word<S: serde::Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.word())
}

fn rfc3339<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}
