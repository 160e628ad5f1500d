//! One action on many tasks. The number of tasks is stated first, and each refusal is reported.

use axum::Json;
use axum::extract::State;
use outlast::server::Scopes;
use outlast_engine::TaskId;
use outlast_engine::store::{Position, Snapshot, Status};
use serde::{Deserialize, Serialize};

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::pages::task::parse;
use crate::query::Query;
use crate::search;
use crate::task_list;
use crate::task_row::Origin;
use crate::task_row_peer::PeerKey;

/// The body of [`bulk`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bulk {
    action: BulkAction,
    /// The tasks; else all that match `query`.
    #[serde(default)]
    ids: Vec<String>,
    query: Option<String>,
    /// Counts the tasks and changes nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum BulkAction {
    Cancel,
    Delete,
    /// Undoes a deletion.
    Undelete,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkResult {
    /// The number of tasks that the action applies to: open ones to cancel, ended ones to delete.
    matched: usize,
    /// Whether more tasks match than one request changes.
    is_more: bool,
    changed: usize,
    /// The deleted tasks, so that the deletion can be undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<String>,
    refused: Vec<RefusedTask>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedTask {
    task_id: String,
    why: String,
}

/// `POST /api/v1/tasks/bulk`.
pub(crate) async fn bulk(
    State(app): State<App>,
    viewer: Viewer,
    Json(bulk): Json<Bulk>,
) -> Result<Json<BulkResult>, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    let mut report = BulkResult {
        matched: 0,
        is_more: false,
        changed: 0,
        deleted: Vec::new(),
        refused: Vec::new(),
    };
    let ids = match &bulk.query {
        Some(query) => matching(&app, &viewer, query, bulk.action, &mut report).await?,
        None => {
            report.is_more = bulk.ids.len() > MAX_CHANGED_TASKS;
            let ids = bulk.ids.iter().take(MAX_CHANGED_TASKS);
            ids.map(|id| RowName::parse(id)).collect::<Result<_, _>>()?
        }
    };
    report.matched = ids.len();
    if bulk.dry_run {
        return Ok(Json(report));
    }
    for name in ids {
        match change(&app, &viewer, bulk.action, &name).await {
            Ok(()) => {
                report.changed += 1;
                if bulk.action == BulkAction::Delete {
                    report.deleted.push(name.text());
                }
            }
            Err(error) => report.refused.push(RefusedTask {
                task_id: name.text(),
                why: error.message,
            }),
        }
    }
    Ok(Json(report))
}

/// What a row of the list names.
enum RowName {
    Stored(TaskId),
    Peer(PeerKey, String),
}

impl RowName {
    fn parse(key: &str) -> Result<Self, ConsoleError> {
        match PeerKey::parse(key) {
            Some(name) => Ok(Self::Peer(name, key.to_owned())),
            None => Ok(Self::Stored(parse(key)?)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Stored(id) => id.to_string(),
            Self::Peer(_, key) => key.clone(),
        }
    }
}

/// The tasks that match and that the action applies to.
async fn matching(
    app: &App,
    viewer: &Viewer,
    text: &str,
    action: BulkAction,
    report: &mut BulkResult,
) -> Result<Vec<RowName>, ConsoleError> {
    let query = Query::of(app, text, viewer);
    if let Some(problem) = query.problems.first() {
        return Err(ConsoleError::invalid(problem.clone()));
    }
    let applies = |status| match action {
        BulkAction::Cancel => matches!(status, Status::Working | Status::InputRequired),
        BulkAction::Delete => !matches!(status, Status::Working | Status::InputRequired),
        BulkAction::Undelete => false,
    };
    let (mut ids, mut after): (Vec<RowName>, Option<Position>) = (Vec::new(), None);
    if action == BulkAction::Cancel {
        // A task that is not in the store ends there, and is deleted there.
        let rows = task_list::peer_rows(app, viewer).await.into_iter();
        let rows = rows.filter(|row| applies(row.status) && query.matches_row(row));
        for row in rows.take(MAX_CHANGED_TASKS) {
            ids.push(RowName::parse(&row.key)?);
        }
    }
    if query.is_impossible || !query.shows(Origin::Store) {
        return Ok(ids);
    }
    loop {
        let found = search::search(app, &query.filter, after, search::PAGE_SIZE).await?;
        for task in &found.tasks {
            if ids.len() == MAX_CHANGED_TASKS {
                report.is_more = true;
                return Ok(ids);
            }
            if applies(Status::of(task)) {
                ids.push(RowName::Stored(task.id()));
            }
        }
        after = found.next;
        if after.is_none() {
            return Ok(ids);
        }
    }
}

async fn change(
    app: &App,
    viewer: &Viewer,
    action: BulkAction,
    name: &RowName,
) -> Result<(), ConsoleError> {
    let id = match (name, action) {
        (RowName::Stored(id), _) => *id,
        (RowName::Peer(key, _), BulkAction::Cancel) => return cancel_peer(app, viewer, key).await,
        (RowName::Peer(..), BulkAction::Delete | BulkAction::Undelete) => {
            return Err(ConsoleError::conflict(
                "the task is not in the store: it is deleted where it is kept, when its TTL ends",
            ));
        }
    };
    match action {
        BulkAction::Cancel => {
            let _ = app.engine().cancel_now(viewer.actor(), id).await?;
        }
        BulkAction::Delete => {
            let Snapshot::Ended(_) = app.engine().get(&viewer.scope(), id).await? else {
                return Err(ConsoleError::conflict("the task has not ended"));
            };
            app.deletions().schedule(app, viewer.actor(), id)?;
        }
        BulkAction::Undelete => {
            // Checks the owner.
            app.engine().get(&viewer.scope(), id).await?;
            if !app.deletions().undo(id) {
                return Err(ConsoleError::conflict("the task is not being deleted"));
            }
        }
    }
    Ok(())
}

async fn cancel_peer(app: &App, viewer: &Viewer, key: &PeerKey) -> Result<(), ConsoleError> {
    let workspace = app.workspace(viewer)?;
    match key {
        PeerKey::Call(id) => workspace.cancel_call(*id).await?,
        PeerKey::Hosted(id) => {
            let hosted = workspace.hosted_tasks().await;
            let found = hosted.into_iter().find(|hosted| hosted.task.id == *id);
            let found = found.ok_or_else(|| ConsoleError::not_found("there is no such task"))?;
            workspace.cancel_hosted(&found.connection, id).await?;
        }
    }
    Ok(())
}

/// The maximum number of tasks that one request changes.
const MAX_CHANGED_TASKS: usize = 1_000;
