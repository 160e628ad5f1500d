//! Errors of the engine. The variant says who must act.

use std::sync::Arc;

use crate::store::StoreError;
use crate::transition::Refused;

/// Why the engine refused or failed an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller has no task with this id.
    #[error("task not found")]
    NotFound,
    /// The task existed, and has expired.
    #[error("task has expired")]
    Expired,
    /// The state of the task does not allow the command.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The request key was used for another request.
    #[error("request key {0} was used for another request")]
    KeyConflict(Arc<str>),
    /// The cursor is invalid, or was made for another owner.
    #[error("invalid cursor")]
    BadCursor,
    /// A value is too large.
    #[error("{what} has {size} bytes, more than the limit of {limit} (setting `sizes.{setting}`)")]
    TooLarge {
        /// The name of the value.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
        /// The setting that limits it.
        setting: &'static str,
    },
    /// No runner with this name is registered.
    #[error("no runner is named {0}")]
    NoRunner(Arc<str>),
    /// The engine accepts no new work.
    #[error("the engine is shutting down")]
    Closing,
    /// The call is not a task, so that its work cannot be done elsewhere.
    #[error("the call is not a task; only a task can be detached")]
    NotATask,
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    /// Whether a retry may succeed. The operation may have taken place.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// Why an input request has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The caller does not support this kind of input request.
    #[error("the caller does not support {0}")]
    Unsupported(&'static str),
    /// The input request was withdrawn, or the call has ended.
    #[error("the input request was withdrawn")]
    Withdrawn,
    /// The input request could not be stored.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
