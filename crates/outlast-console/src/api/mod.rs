//! `/api/v1/…`: tasks as JSON, for scripts of the pages and for programs.
//!
//! | request | what |
//! |---|---|
//! | `GET /tasks?q=&after=&limit=` | tasks, newest first; `q` is a search as on the page |
//! | `GET /tasks/ID` | one task with its arguments, timeline and input requests |
//! | `GET /tasks/ID/result` | the outcome: the result or the error as the tool returned it |
//! | `POST /tasks/cancel` | `{server, source, taskId}` |
//! | `POST /tasks/answer` | `{taskId, key, result}` or `{taskId, key, error}` |
//! | `POST /tasks/rerun` | `{taskId, confirmed}` |
//! | `POST /tasks/delete`, `POST /tasks/undelete` | `{taskId}` |
//! | `POST /tasks/bulk` | `{action, ids}` or `{action, query}`; `dryRun` counts only |
//! | `GET /events` | server-sent events: `mcpTaskStatus`, `taskRemoved`, `resync` |

mod bulk;
mod changes;
mod read;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use crate::console::App;
use crate::events;

/// The routes of the API.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/tasks", get(read::list))
        .route("/api/v1/tasks/{id}", get(read::task))
        .route("/api/v1/tasks/{id}/result", get(read::result))
        .route("/api/v1/tasks/cancel", post(changes::cancel))
        .route("/api/v1/tasks/answer", post(changes::answer))
        .route("/api/v1/tasks/rerun", post(changes::rerun))
        .route("/api/v1/tasks/delete", post(changes::delete))
        .route("/api/v1/tasks/undelete", post(changes::undelete))
        .route("/api/v1/tasks/bulk", post(bulk::bulk))
        .route("/api/v1/events", get(events::stream))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// The maximum size of a body: an input response of the default maximum size, and its frame.
const MAX_BODY_BYTES: usize = 17 << 20;
