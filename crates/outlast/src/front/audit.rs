//! The audit trail: a line for every step in the life of a task, with whose it is (V1-AUD-1, V1-AUD-2), and for every
//! look at a task that is not there (V1-AUD-3). All of them have the target `outlast::audit`.
//!
//! Whoever collects logs gets no secret: of the name of a session, which lets in whoever knows it, only the beginning
//! is told.

use std::borrow::Cow;

use outlast_engine::{Owner, TaskId};
use outlast_wire::{RawRef, Status, object};

pub(crate) fn created(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = %shown(owner), "created");
}

pub(crate) fn ended(owner: &Owner, task: TaskId, status: Status) {
    tracing::info!(target: AUDIT, %task, owner = %shown(owner), status = status.as_str(), "ended");
}

pub(crate) fn retrieved(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = %shown(owner), "result retrieved");
}

pub(crate) fn cancelled(owner: &Owner, task: TaskId) {
    tracing::info!(target: AUDIT, %task, owner = %shown(owner), "cancelled");
}

/// Many of these mean that somebody guesses.
pub(crate) fn not_found(owner: &Owner, method: &str) {
    tracing::info!(target: AUDIT, owner = %shown(owner), method, "task not found");
}

/// V1-CANC-7.
pub(crate) fn request_cancelled(owner: &Owner, params: RawRef<'_>) {
    let reason = object::find(params, &["reason"]).map_or("none", RawRef::as_str);
    let reason: String = reason.chars().take(REASON).collect();
    tracing::info!(target: AUDIT, owner = %shown(owner), reason, "request cancelled");
}

/// The owner as a log may show it.
fn shown(owner: &Owner) -> Cow<'_, str> {
    match owner.as_str().split_once(':') {
        Some(("session", name)) => {
            let begin: String = name.chars().take(6).collect();
            format!("session:{begin}…").into()
        }
        _ => owner.as_str().into(),
    }
}

/// The target of every line, here and in `back`.
pub(crate) const AUDIT: &str = "outlast::audit";

/// How much of a stranger's reason is told.
const REASON: usize = 200;
