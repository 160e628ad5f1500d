//! The pages: one module each.

pub(crate) mod call_row;
mod connections;
mod form_parts;
mod json_text;
mod overview;
pub(crate) mod requests;
pub(crate) mod task;
mod tasks;
mod tools;
mod traffic;

use axum::Router;
use axum::http::Uri;
use axum::routing::get;

use crate::console::App;
use crate::error::ConsoleError;

/// The routes of all pages.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/", get(overview::overview))
        .route("/api/v1/overview", get(overview::json))
        .route("/tasks", get(tasks::tasks))
        .route("/tasks/{id}", get(task::task))
        .route("/tasks/{id}/tree", get(task::tree))
        .route("/tasks/{id}/content/{at}", get(task::content))
        .merge(requests::router())
        .merge(tools::router())
        .merge(connections::router())
        .merge(traffic::router())
}

/// A path without a page.
pub(crate) async fn not_found(uri: Uri) -> ConsoleError {
    ConsoleError::not_found(format!("there is no page at {}", uri.path()))
        .next("choose a page in the navigation")
}
