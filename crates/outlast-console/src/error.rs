//! Errors of the console: what happened and what to do next, as a page or as JSON.

use askama::Template;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast::server::Scopes;
use outlast_engine::EngineError;
use outlast_engine::store::StoreError;
use serde_json::json;

use crate::layout::Layout;
use crate::workspace::WorkspaceError;

/// Why a request of a page or a script failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ConsoleError {
    pub(crate) status: StatusCode,
    /// What happened.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) next: Option<String>,
}

/// The page of an error.
#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    layout: Layout,
    error: &'a ConsoleError,
}

impl From<WorkspaceError> for ConsoleError {
    fn from(error: WorkspaceError) -> Self {
        let status = match &error {
            WorkspaceError::UnknownConnection(_)
            | WorkspaceError::UnknownCall
            | WorkspaceError::UnknownTask(_) => StatusCode::NOT_FOUND,
            WorkspaceError::NotConnected(..) | WorkspaceError::Request(_) => {
                StatusCode::BAD_GATEWAY
            }
            _ => StatusCode::CONFLICT,
        };
        let next = matches!(
            error,
            WorkspaceError::NotConnected(..) | WorkspaceError::Request(_)
        );
        let error = Self::new(status, error.to_string());
        if next {
            error.next("look at the page Connections: it says what to do")
        } else {
            error
        }
    }
}

impl ConsoleError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            next: None,
        }
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// There is no such page, task or server for this viewer.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// The request is wrong.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    /// The state of a task or a server does not allow the change.
    pub(crate) fn conflict(what: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, what)
    }

    /// The viewer's token does not have the scope.
    pub(crate) fn missing_scope(missing: Scopes) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            format!("your token does not have the scope `{missing}`"),
        )
        .next("sign in with a token that has it, or ask the operator for one")
    }

    /// The response of a script: JSON.
    pub(crate) fn as_json(&self) -> Response {
        let body = json!({ "error": { "message": self.message, "next": self.next } });
        (self.status, Json(body)).into_response()
    }

    /// The response of a page.
    pub(crate) fn as_page(&self, layout: Layout) -> Response {
        let page = ErrorPage {
            layout,
            error: self,
        };
        let text = page.render().unwrap_or_else(|_| self.message.clone());
        (self.status, axum::response::Html(text)).into_response()
    }
}

/// The access layer renders it, because only that layer knows whether a page or a script asked.
impl IntoResponse for ConsoleError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<EngineError> for ConsoleError {
    fn from(error: EngineError) -> Self {
        let status = match &error {
            EngineError::NotFound => {
                return Self::not_found("there is no such task")
                    .next("it may have expired, or it belongs to another owner");
            }
            EngineError::Expired => {
                return Self::new(StatusCode::GONE, "the task has expired")
                    .next("run the call again; a longer TTL keeps its result for longer");
            }
            EngineError::NoRunner(server) => {
                return Self::conflict(format!(
                    "the server {server} of this task is not configured"
                ))
                .next("start the gateway with this server");
            }
            EngineError::Store(StoreError::Starting) | EngineError::Closing => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            EngineError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<StoreError> for ConsoleError {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}
