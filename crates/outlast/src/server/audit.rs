//! Audit events of requests about tasks: retrieved results, and requests for tasks
//! that do not exist (V1-AUD-3). The engine writes the lifecycle of tasks to the same target.
//!
//! No secret is logged. A session id gives access to its session, so only its first characters are
//! logged.

use outlast_engine::engine::{AUDIT, call_span};
use outlast_engine::{Owner, TaskId};
use outlast_wire::{Raw, RawRef, object};

use super::{IncomingRequest, Reply};

pub(crate) fn retrieved(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = owner.to_string(), "result retrieved");
}

/// Logs a request for a task that does not exist. Many of these mean that a caller guesses ids.
pub(crate) fn not_found(owner: &Owner, method: &str) {
    tracing::info!(target: AUDIT, owner = owner.to_string(), method, "task not found");
}

/// Logs a cancelled request with its reason (V1-CANC-7).
pub(crate) fn request_cancelled(owner: &Owner, params: RawRef<'_>) {
    let reason = object::find(params, &["reason"]).map_or("none", RawRef::as_str);
    let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
    tracing::info!(target: AUDIT, owner = owner.to_string(), reason, "request cancelled");
}

/// What the audit event of a rejected request needs; `None` if the audit target is off.
pub(super) struct AuditedRequest(Option<(String, Owner, Option<Raw>)>);

impl AuditedRequest {
    pub(super) fn new(request: &IncomingRequest) -> Self {
        let wanted = tracing::enabled!(target: AUDIT, tracing::Level::INFO);
        Self(wanted.then(|| {
            let (method, owner) = (request.method.clone(), request.owner.clone());
            (method, owner, request.params.clone())
        }))
    }

    /// Logs a request whose reply is an error. The error text may come from an upstream, so it is
    /// logged at debug level only.
    pub(super) fn record(self, reply: &Reply) {
        let (Some((method, owner, params)), Reply::Error(error)) = (self.0, reply) else {
            return;
        };
        let _in = call_span(params.as_ref()).entered();
        let code = object::find(error.borrow(), &["code"]).and_then(RawRef::integer);
        tracing::info!(target: AUDIT, owner = owner.to_string(), method, code, "answered with an error");
        tracing::debug!(target: AUDIT, error = error.as_str(), "error of the reply");
    }
}

/// How many characters of a client's cancellation reason are logged.
const MAX_REASON_CHARS: usize = 200;
