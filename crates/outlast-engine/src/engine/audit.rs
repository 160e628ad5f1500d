//! The audit trail: a line for every step in the life of a task, with whose it is (V1-AUD-1, V1-AUD-2).
//!
//! Written where the step is known to be durable, so that it is the same for every generation. No line has anything of
//! what was asked or answered.

use super::call_span;
use crate::id::TaskId;
use crate::outcome::Ending;
use crate::task::Task;
use crate::transition::Takeover;

/// The target of every line.
pub const AUDIT: &str = "outlast::audit";

pub(crate) fn created(task: &Task) {
    told(task, |owner, runner, tool| {
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
    told(task, |owner, runner, tool| {
        tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, how, code, millis, "ended");
    });
}

/// Its executor was gone, and it goes on here.
pub(crate) fn taken_over(task: &Task, how: Takeover) {
    let attempt = task.attempt.0;
    told(task, |owner, runner, tool| match how {
        Takeover::Reattach => {
            tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, attempt, "found again");
        }
        Takeover::Rerun => {
            tracing::info!(target: AUDIT, task = %task.id, owner, runner, tool, attempt, "run again");
        }
    });
}

pub(crate) fn expired(task: TaskId) {
    tracing::info!(target: AUDIT, %task, "removed, its time is over");
}

/// Tells something of a task, in the trace that it belongs to.
fn told(task: &Task, tell: impl FnOnce(&str, &str, Option<&str>)) {
    if tracing::enabled!(target: AUDIT, tracing::Level::INFO) {
        let origin = &task.origin;
        let _trace = call_span(origin.params.as_ref()).entered();
        let owner = task.owner.to_string();
        tell(&owner, &origin.runner, origin.tool.as_deref());
    }
}
