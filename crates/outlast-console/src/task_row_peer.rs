//! Tasks of a workspace as rows: those at servers, for calls of the viewer, and those that the
//! client of the viewer hosts for servers.
//!
//! A call to an endpoint of this program has no row here: its task is in the store.

use outlast_engine::store::Status;
use outlast_wire::{PeerTask, Timestamp};

use crate::access::Viewer;
use crate::pages::{call_row::millis, requests};
use crate::status_text;
use crate::task_row::{Origin, TaskRow};
use crate::workspace::{CallId, CallView, HostedTask, PendingItem, Workspace};
use crate::workspaces::OWN_SOURCE;

/// What a row key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerKey {
    /// The task of a call.
    Call(CallId),
    /// A hosted task.
    Hosted(String),
}

impl PeerKey {
    /// Reads the key of a row; `None` if it names a task of the store.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        if let Some(number) = key.strip_prefix(CALL_PREFIX) {
            return number.parse().ok().map(|number| Self::Call(CallId(number)));
        }
        let id = key.strip_prefix(HOSTED_PREFIX)?;
        Some(Self::Hosted(id.to_owned()))
    }
}

/// The tasks of a workspace, newest first.
pub(crate) async fn rows(workspace: &Workspace, viewer: &Viewer) -> Vec<TaskRow> {
    let own = |source: &str| source == OWN_SOURCE;
    let calls = workspace.calls().into_iter();
    let mut rows: Vec<_> = calls
        .filter(|call| !own(&call.connection.source))
        .filter_map(|call| of_call(&call, viewer))
        .collect();
    let hosted = workspace.hosted_tasks().await;
    if !hosted.is_empty() {
        let mut items = workspace.pending();
        items.extend(workspace.departed(MAX_DEPARTED_TASKS));
        rows.extend(hosted.iter().map(|task| of_hosted(task, &items, viewer)));
    }
    rows.sort_by(|a, b| (b.created_at, &b.key).cmp(&(a.created_at, &a.key)));
    rows
}

fn of_call(call: &CallView, viewer: &Viewer) -> Option<TaskRow> {
    let task = call.task.as_ref()?;
    let progress = call.progress.as_ref();
    Some(TaskRow {
        key: format!("{CALL_PREFIX}{}", call.id.0),
        path: Some(format!("/calls/{}", call.id.0)),
        origin: Origin::Requested,
        tool: Some(call.tool.clone()),
        status: status(call.status.as_str()),
        display_message: call.message.as_deref().and_then(status_text::replacement),
        status_message: call.message.clone(),
        progress: progress.map(|progress| progress.progress),
        total: progress.and_then(|progress| progress.total),
        revision: call.revision,
        created_at: task.created.unwrap_or(Timestamp(millis(call.began))),
        last_updated_at: match call.ended {
            Some(ended) => Timestamp(millis(ended)),
            None => task.updated.unwrap_or(Timestamp(millis(call.began))),
        },
        ..of_peer(task, &call.connection, viewer, call.is_open())
    })
}

fn of_hosted(hosted: &HostedTask, items: &[PendingItem], viewer: &Viewer) -> TaskRow {
    let task = &hosted.task;
    let is_of_task = |item: &&PendingItem| {
        item.connection == hosted.connection && item.request.hosted_task.as_ref() == Some(&task.id)
    };
    let item = items.iter().find(is_of_task);
    let waiting = item.filter(|item| item.left.is_none());
    let status = status(task.status.as_str());
    let is_open = matches!(status, Status::Working | Status::InputRequired);
    TaskRow {
        key: format!("{HOSTED_PREFIX}{}", task.id),
        path: waiting.map(|item| {
            let tab = requests::tab(item.request.kind);
            format!("/requests?tab={tab}#request-{}", item.id)
        }),
        origin: Origin::Hosted,
        // The method stands where a call has its tool.
        tool: item.map(|item| item.request.kind.method().to_owned()),
        status,
        display_message: task.message.as_deref().and_then(status_text::replacement),
        status_message: task.message.clone(),
        ..of_peer(task, &hosted.connection, viewer, is_open)
    }
}

/// What both have in common.
fn of_peer(
    task: &PeerTask,
    connection: &outlast::client::ConnectionName,
    viewer: &Viewer,
    is_open: bool,
) -> TaskRow {
    let created = task.created.unwrap_or(Timestamp(0));
    TaskRow {
        key: String::new(),
        path: None,
        task_id: task.id.clone(),
        server: connection.server.to_string(),
        source: connection.source.to_string(),
        origin: Origin::Requested,
        tool: None,
        status: Status::Working,
        status_message: None,
        display_message: None,
        progress: None,
        total: None,
        // A hosted task has no number of its version, so its time stands for it.
        revision: task.updated.map_or(0, |updated| updated.0),
        owner: viewer.name(),
        created_at: created,
        last_updated_at: task.updated.unwrap_or(created),
        ttl: task.ttl_ms,
        poll_interval: task.poll_interval_ms.filter(|_| is_open),
    }
}

fn status(word: &str) -> Status {
    Status::parse(word).unwrap_or(Status::Working)
}

const CALL_PREFIX: &str = "call-";
const HOSTED_PREFIX: &str = "hosted-";

/// How many answered requests are searched for the method of a hosted task.
const MAX_DEPARTED_TASKS: usize = 500;
