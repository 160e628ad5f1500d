//! The audit trail: one line per event in the lifecycle of a task, with its owner (V1-AUD-1,
//! V1-AUD-2).
//!
//! A line is written once the event is durable, and is the same for both protocol revisions. No
//! line contains arguments, input or results. The command line does not log this target by default.

use super::{Actor, call_span};
use crate::id::{InputKey, TaskId};
use crate::outcome::Ending;
use crate::owner::Owner;
use crate::task::Task;
use crate::transition::Takeover;

/// The target of every line.
pub const AUDIT: &str = "outlast::audit";

pub(crate) fn created(task: &Task) {
    described(task, |owner, runner, tool| {
        tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, "created");
    });
}

pub(crate) fn ended(task: &Task, how: Ending, millis: u64) {
    let (how, code) = match how {
        Ending::Result => ("result", None),
        Ending::ToolError => ("tool error", None),
        Ending::Error(code) => ("error", Some(code.0)),
        Ending::Cancelled => ("cancelled", None),
    };
    described(task, |owner, runner, tool| {
        tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, how, code, millis, "ended");
    });
}

/// The executor was lost, and this engine continues the task.
pub(crate) fn taken_over(task: &Task, how: Takeover) {
    let attempt = task.attempt.0;
    described(task, |owner, runner, tool| match how {
        Takeover::Reattach => {
            tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, attempt, "found again");
        }
        Takeover::Rerun => {
            tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, attempt, "run again");
        }
    });
}

/// An input response was stored.
pub(crate) fn input_answered(task: &Task, key: &InputKey, actor: &Actor) {
    described(task, |owner, runner, tool| {
        let (key, by) = (key.as_str(), &*actor.name(&task.owner));
        tracing::info!(target: AUDIT, task = %task.id, owner, by, runner, tool, key, "input answered");
    });
}

pub(crate) fn expired(task: TaskId) {
    tracing::info!(target: AUDIT, %task, "expired and removed");
}

/// A cancellation was requested or performed.
pub(crate) fn cancelled(task: &Task, actor: &Actor) {
    described(task, |owner, runner, tool| {
        let by = &*actor.name(&task.owner);
        tracing::info!(target: AUDIT, task = %task.id, owner, by, runner, tool, "cancelled");
    });
}

/// A task was deleted before its TTL ended.
pub(crate) fn deleted(task: TaskId, owner: &Owner, actor: &Actor) {
    let by = &*actor.name(owner);
    tracing::info!(target: AUDIT, %task, %owner, by, "deleted");
}

/// An ended task exceeded the limits of its retention.
pub(crate) fn pruned(task: TaskId) {
    tracing::info!(target: AUDIT, %task, "removed by retention");
}

/// Writes a line about a task, in the trace of its call.
fn described(task: &Task, write: impl FnOnce(&str, &str, Option<&str>)) {
    if tracing::enabled!(target: AUDIT, tracing::Level::INFO) {
        let origin = &task.origin;
        let _trace = call_span(origin.params.as_ref()).entered();
        let owner = task.owner.to_string();
        write(&owner, &origin.runner, origin.tool.as_deref());
    }
}
