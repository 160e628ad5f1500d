//! Audit events of tasks at servers: one line per step of a followed task (V1-AUD-4), with its
//! server and tool (V1-AUD-5). The tracing target is `outlast::audit`, as for the tasks that
//! Outlast serves.

use outlast_engine::Outcome;
use outlast_engine::engine::AUDIT;
use outlast_wire::PeerTask;

use super::execution::{ExecutionStatus, OutcomeError};

/// Records that an execution follows the task from now on.
pub(super) fn followed(status: &ExecutionStatus, task: &PeerTask) {
    let (server, tool, task) = (&*status.server, &*status.tool, &*task.id);
    tracing::info!(target: AUDIT, task, server, tool, "followed");
}

/// Records a new status of the task.
pub(super) fn status_changed(status: &ExecutionStatus, task: &PeerTask) {
    let (server, status, task) = (&*status.server, task.status.as_str(), &*task.id);
    tracing::info!(target: AUDIT, task, server, status, "status changed");
}

/// Records that the task is no longer followed: its outcome was retrieved, or it has none.
pub(super) fn ended(
    status: &ExecutionStatus,
    task: &PeerTask,
    ended: &Result<Outcome, OutcomeError>,
) {
    let (server, task) = (&*status.server, &*task.id);
    match ended {
        Ok(_) => tracing::info!(target: AUDIT, task, server, "outcome retrieved"),
        Err(why) => {
            tracing::info!(target: AUDIT, task, server, why = %why.brief(), "no outcome");
        }
    }
}
