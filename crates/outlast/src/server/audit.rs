//! The audit trail of those who ask for tasks: looks at results, wishes to cancel, and every look at a task that is not
//! there (V1-AUD-3). The life of tasks themselves is told by the engine, under the same target.
//!
//! Whoever collects logs gets no secret: of the name of a session, which lets in whoever knows it, only the beginning
//! is told.

use outlast_engine::engine::{AUDIT, call_span};
use outlast_engine::{Owner, TaskId};
use outlast_wire::{Raw, RawRef, object};

use super::{IncomingRequest, Reply};

pub(crate) fn retrieved(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = owner.to_string(), "result retrieved");
}

pub(crate) fn cancelled(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = owner.to_string(), "cancelled");
}

/// Many of these mean that somebody guesses.
pub(crate) fn not_found(owner: &Owner, method: &str) {
    tracing::info!(target: AUDIT, owner = owner.to_string(), method, "task not found");
}

/// V1-CANC-7.
pub(crate) fn request_cancelled(owner: &Owner, params: RawRef<'_>) {
    let reason = object::find(params, &["reason"]).map_or("none", RawRef::as_str);
    let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
    tracing::info!(target: AUDIT, owner = owner.to_string(), reason, "request cancelled");
}

/// What is remembered of a request for the case that it is refused; nothing if nobody would hear of it.
pub(super) struct AuditedRequest(Option<(String, Owner, Option<Raw>)>);

impl AuditedRequest {
    pub(super) fn new(request: &IncomingRequest) -> Self {
        let wanted = tracing::enabled!(target: AUDIT, tracing::Level::INFO);
        Self(wanted.then(|| {
            let (method, owner) = (request.method.clone(), request.owner.clone());
            (method, owner, request.params.clone())
        }))
    }

    /// Tells of a request that is answered with an error, and at a lower level in which words: they may be a server's.
    pub(super) fn record(self, reply: &Reply) {
        let (Some((method, owner, params)), Reply::Error(error)) = (self.0, reply) else {
            return;
        };
        let _in = call_span(params.as_ref()).entered();
        let code = object::find(error.borrow(), &["code"]).and_then(RawRef::integer);
        tracing::info!(target: AUDIT, owner = owner.to_string(), method, code, "answered with an error");
        tracing::debug!(target: AUDIT, error = error.as_str(), "the error");
    }
}

/// How much of a stranger's reason is told.
const MAX_REASON_CHARS: usize = 200;
