//! Changes of one task: cancel, answer, run again, delete.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use outlast::client::ConnectionName;
use outlast::server::Scopes;
use outlast_engine::store::Snapshot;
use outlast_engine::transition::Refused;
use outlast_engine::{EngineError, InputKey, InputResponse, RetryClass};
use outlast_wire::Raw;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Viewer;
use crate::console::App;
use crate::deletions::UNDO_TIME;
use crate::error::ConsoleError;
use crate::pages::{requests, task::parse};
use crate::task_row::TaskRow;

/// Names one task: the payload of `cancelMcpTask` (S4-70).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskName {
    #[serde(default)]
    server: String,
    #[serde(default)]
    source: String,
    task_id: String,
}

/// `POST /api/v1/tasks/cancel`. The task ends as cancelled at once, whatever its work does.
pub(crate) async fn cancel(
    State(app): State<App>,
    viewer: Viewer,
    Json(name): Json<TaskName>,
) -> Result<Response, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    if !matches!(name.source.as_str(), "" | STORE_SOURCE) {
        // A task at a server, or one that is hosted for a server.
        let connection = ConnectionName::new(&*name.server, &*name.source);
        let workspace = app.workspace(&viewer)?;
        workspace.cancel_task(&connection, &name.task_id).await?;
        return Ok(Json(json!({ "taskId": name.task_id })).into_response());
    }
    let id = parse(&name.task_id)?;
    match app.engine().cancel_now(viewer.actor(), id).await {
        Ok(task) => Ok(Json(TaskRow::of(app.engine(), &task.into())).into_response()),
        Err(EngineError::Refused(Refused::AlreadyEnded(ending))) => Err(ConsoleError::conflict(
            format!("the task has already finished ({ending})"),
        )),
        Err(error) => Err(error.into()),
    }
}

/// The source of tasks in the store.
const STORE_SOURCE: &str = "store";

/// The body of [`answer`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputResponseBody {
    task_id: String,
    key: String,
    result: Option<Raw>,
    error: Option<Raw>,
}

/// `POST /api/v1/tasks/answer`: provides the response to one input request.
pub(crate) async fn answer(
    State(app): State<App>,
    viewer: Viewer,
    Json(answer): Json<InputResponseBody>,
) -> Result<Json<Value>, ConsoleError> {
    viewer.require(Scopes::ANSWER)?;
    let id = parse(&answer.task_id)?;
    let response = match (answer.result, answer.error) {
        (Some(result), None) if result.borrow().is_object() => InputResponse::Result(result),
        (None, Some(error)) if error.borrow().is_object() => InputResponse::Error(error),
        _ => {
            return Err(ConsoleError::invalid(
                "an answer has one of `result` and `error`, and it is an object",
            ));
        }
    };
    let key = InputKey::new(answer.key);
    requests::answer_stored(&app, &viewer, id, key, response).await?;
    Ok(Json(json!({})))
}

/// The body of [`rerun`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rerun {
    task_id: String,
    /// Whether the caller knows that the tool may have its effect twice.
    #[serde(default)]
    confirmed: bool,
}

/// `POST /api/v1/tasks/rerun`: runs the request of an ended task again, as a new task.
pub(crate) async fn rerun(
    State(app): State<App>,
    viewer: Viewer,
    Json(rerun): Json<Rerun>,
) -> Result<Json<Value>, ConsoleError> {
    viewer.require(Scopes::CALL)?;
    let id = parse(&rerun.task_id)?;
    let task = app.engine().load(&viewer.scope(), id).await?;
    if task.origin.retry == RetryClass::Never && !rerun.confirmed {
        let tool = task.origin.tool.as_deref().unwrap_or("this request");
        return Err(ConsoleError::conflict(format!(
            "{tool} may have its effect twice: it does not declare that it only reads or is idempotent"
        ))
        .next("send `confirmed: true` if that is right"));
    }
    match app.engine().rerun(&viewer.scope(), id).await? {
        Some(new) => Ok(Json(json!({ "taskId": new.id.to_string() }))),
        None => {
            Err(ConsoleError::conflict("the task has not ended")
                .next("cancel it, or wait for its end"))
        }
    }
}

/// `POST /api/v1/tasks/delete`: deletes an ended task, after the time for an undo.
pub(crate) async fn delete(
    State(app): State<App>,
    viewer: Viewer,
    Json(name): Json<TaskName>,
) -> Result<Json<Value>, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    let id = parse(&name.task_id)?;
    let Snapshot::Ended(_) = app.engine().get(&viewer.scope(), id).await? else {
        return Err(
            ConsoleError::conflict("the task has not ended").next("cancel it, or wait for its end")
        );
    };
    app.deletions().schedule(&app, viewer.actor(), id)?;
    Ok(Json(json!({ "undoSeconds": UNDO_TIME.as_secs() })))
}

/// `POST /api/v1/tasks/undelete`: undoes a deletion.
pub(crate) async fn undelete(
    State(app): State<App>,
    viewer: Viewer,
    Json(name): Json<TaskName>,
) -> Result<Json<Value>, ConsoleError> {
    viewer.require(Scopes::CANCEL)?;
    let id = parse(&name.task_id)?;
    // Checks the owner.
    app.engine().get(&viewer.scope(), id).await?;
    if app.deletions().undo(id) {
        Ok(Json(json!({})))
    } else {
        Err(ConsoleError::conflict("the task is not being deleted"))
    }
}
