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

/// The body of [`bulk`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bulk {
    action: Action,
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
enum Action {
    Cancel,
    Delete,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The number of tasks that the action applies to: open ones to cancel, ended ones to delete.
    matched: usize,
    /// Whether more tasks match than one request changes.
    is_more: bool,
    changed: usize,
    refused: Vec<Refusal>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    task_id: String,
    why: String,
}

/// `POST /api/v1/tasks/bulk`.
pub(crate) async fn bulk(
    State(app): State<App>,
    viewer: Viewer,
    Json(bulk): Json<Bulk>,
) -> Result<Json<Report>, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    let mut report = Report {
        matched: 0,
        is_more: false,
        changed: 0,
        refused: Vec::new(),
    };
    let ids = match &bulk.query {
        Some(query) => matching(&app, &viewer, query, bulk.action, &mut report).await?,
        None => {
            report.is_more = bulk.ids.len() > MAX_CHANGED;
            let ids = bulk.ids.iter().take(MAX_CHANGED);
            ids.map(|id| parse(id)).collect::<Result<_, _>>()?
        }
    };
    report.matched = ids.len();
    if bulk.dry_run {
        return Ok(Json(report));
    }
    for id in ids {
        match change(&app, &viewer, bulk.action, id).await {
            Ok(()) => report.changed += 1,
            Err(error) => report.refused.push(Refusal {
                task_id: id.to_string(),
                why: error.message,
            }),
        }
    }
    Ok(Json(report))
}

/// The tasks that match and that the action applies to.
async fn matching(
    app: &App,
    viewer: &Viewer,
    text: &str,
    action: Action,
    report: &mut Report,
) -> Result<Vec<TaskId>, ConsoleError> {
    let query = Query::of(app, text, viewer);
    if let Some(problem) = query.problems.first() {
        return Err(ConsoleError::invalid(problem.clone()));
    }
    let applies = |status| match action {
        Action::Cancel => matches!(status, Status::Working | Status::InputRequired),
        Action::Delete => !matches!(status, Status::Working | Status::InputRequired),
    };
    let (mut ids, mut after): (Vec<TaskId>, Option<Position>) = (Vec::new(), None);
    loop {
        let found = search::search(app, &query.filter, after, search::PAGE_SIZE).await?;
        for task in &found.tasks {
            if ids.len() == MAX_CHANGED {
                report.is_more = true;
                return Ok(ids);
            }
            if applies(Status::of(task)) {
                ids.push(task.id());
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
    action: Action,
    id: TaskId,
) -> Result<(), ConsoleError> {
    match action {
        Action::Cancel => {
            let _ = app.engine().cancel_now(viewer.actor(), id).await?;
        }
        Action::Delete => {
            let Snapshot::Ended(_) = app.engine().get(&viewer.scope(), id).await? else {
                return Err(ConsoleError::conflict("the task has not ended"));
            };
            app.deletions().schedule(app, viewer.actor(), id)?;
        }
    }
    Ok(())
}

/// The maximum number of tasks that one request changes.
const MAX_CHANGED: usize = 1_000;
