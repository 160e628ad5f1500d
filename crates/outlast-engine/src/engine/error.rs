//! Why an engine did not do as asked. The variant says who must act.

use std::sync::Arc;

use crate::store::StoreError;
use crate::transition::Refused;

/// Why an engine did not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The caller has no such task.
    #[error("task not found")]
    NotFound,
    /// The task was there; its time is over.
    #[error("task has expired")]
    Expired,
    /// The task cannot do that where it stands.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The request key belongs to another request.
    #[error("request key {0} was used for another request")]
    KeyConflict(Arc<str>),
    /// The cursor is not one of this owner's.
    #[error("invalid cursor")]
    BadCursor,
    /// Something is too large.
    #[error("{what} has {size} bytes, more than the limit of {limit} (setting `sizes.{setting}`)")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large.
        size: usize,
        /// How large it may be.
        limit: usize,
        /// Where the limit is set.
        setting: &'static str,
    },
    /// Nobody here runs such calls.
    #[error("no runner is named {0}")]
    NoRunner(Arc<str>),
    /// The engine takes no new work.
    #[error("the engine is shutting down")]
    Closing,
    /// The store did not do as asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    /// Whether trying the same again later may help. What was tried may have taken place.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The caller cannot answer such questions.
    #[error("the caller does not support {0}")]
    Unsupported(&'static str),
    /// The question was taken back, or the call is over.
    #[error("the question was withdrawn")]
    Withdrawn,
    /// The question could not be put.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
