//! Reads of tasks.

use axum::Json;
use axum::extract::{Path, Query as QueryParams, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use outlast_engine::task::State as TaskState;
use outlast_wire::Raw;
use serde::{Deserialize, Serialize};

use crate::access::Viewer;
use crate::console::App;
use crate::error::ConsoleError;
use crate::pages::task::{arguments, parse};
use crate::query::Query;
use crate::task_list;
use crate::task_row::TaskRow;

/// The query of [`list`].
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListParams {
    #[serde(default)]
    q: String,
    #[serde(default)]
    after: String,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct List {
    tasks: Vec<TaskRow>,
    /// The `after` of the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Detail {
    #[serde(flatten)]
    row: TaskRow,
    method: String,
    attempt: u32,
    /// Whether the tool declares that it can run again.
    is_repeatable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Raw>,
    timeline: Vec<TimelineEntryBody>,
    input_requests: Vec<InputRequestBody>,
}

#[derive(Serialize)]
struct TimelineEntryBody {
    at: String,
    event: outlast_engine::task::TimelineEvent,
}

#[derive(Serialize)]
struct InputRequestBody {
    key: String,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Raw>,
}

/// `GET /api/v1/tasks`.
pub(crate) async fn list(
    State(app): State<App>,
    viewer: Viewer,
    QueryParams(params): QueryParams<ListParams>,
) -> Result<Json<List>, ConsoleError> {
    let query = Query::of(&app, &params.q, &viewer);
    if let Some(problem) = query.problems.first() {
        return Err(ConsoleError::invalid(problem.clone()));
    }
    let limit = params
        .limit
        .unwrap_or(DEFAULT_PAGE_TASKS)
        .clamp(1, MAX_PAGE_TASKS);
    let peers = task_list::peer_rows(&app, &viewer).await;
    let page = task_list::page(&app, &query, &peers, &params.after.parse()?, limit).await?;
    Ok(Json(List {
        tasks: page.rows,
        next: page.next.map(|cursor| cursor.to_string()),
    }))
}

/// `GET /api/v1/tasks/ID`.
pub(crate) async fn task(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<String>,
) -> Result<Json<Detail>, ConsoleError> {
    let id = parse(&id)?;
    let task = app.engine().load(&viewer.scope(), id).await?;
    if app.deletions().contains(id) {
        return Err(ConsoleError::not_found("the task was deleted"));
    }
    let timeline = task.timeline.entries.iter().map(|entry| TimelineEntryBody {
        at: entry.at.to_string(),
        event: entry.event.clone(),
    });
    let input_requests = match &task.state {
        TaskState::AwaitingInput(outstanding) => outstanding
            .iter()
            .map(|(key, request)| InputRequestBody {
                key: key.as_str().to_owned(),
                method: request.kind.method(),
                params: request.params.clone(),
            })
            .collect(),
        TaskState::Working | TaskState::Ended(_) => Vec::new(),
    };
    Ok(Json(Detail {
        method: task.origin.method.to_string(),
        attempt: task.attempt.0,
        is_repeatable: task.origin.retry == outlast_engine::RetryClass::Rerun,
        arguments: arguments(&task),
        timeline: timeline.collect(),
        input_requests,
        row: TaskRow::of(app.engine(), &task.into()),
    }))
}

/// `GET /api/v1/tasks/ID/result`: the bytes that the tool returned.
pub(crate) async fn result(
    State(app): State<App>,
    viewer: Viewer,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let ended = app.engine().outcome(&viewer.scope(), parse(&id)?).await?;
    let Some(ended) = ended else {
        return Err(ConsoleError::conflict("the task has not ended")
            .next("wait for the event `mcpTaskStatus` of the task"));
    };
    let Some(body) = ended.body else {
        return Err(ConsoleError::conflict(
            "the task was cancelled and has no result",
        ));
    };
    Ok((
        [(CONTENT_TYPE, "application/json")],
        body.as_str().to_owned(),
    )
        .into_response())
}

const DEFAULT_PAGE_TASKS: usize = 50;
const MAX_PAGE_TASKS: usize = 1_000;
