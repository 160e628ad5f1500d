//! The audit trail of tasks at servers: a line for every step in the life of one that we follow (V1-AUD-4), with the
//! server and the tool it belongs to (V1-AUD-5). Their target is that of the tasks that we serve, `outlast::audit`.

use outlast_engine::Outcome;
use outlast_engine::engine::AUDIT;
use outlast_wire::PeerTask;

use super::execution::{ExecutionStatus, OutcomeError};

/// Somebody here follows the task from now on.
pub(super) fn followed(status: &ExecutionStatus, task: &PeerTask) {
    let (server, tool, task) = (&*status.server, &*status.tool, &*task.id);
    tracing::info!(target: AUDIT, task, server, tool, "followed");
}

/// The server said that the task has another status.
pub(super) fn moved(status: &ExecutionStatus, task: &PeerTask) {
    let (server, status, task) = (&*status.server, task.status.as_str(), &*task.id);
    tracing::info!(target: AUDIT, task, server, status, "moved");
}

/// Nobody here follows the task any more: its outcome was retrieved, or there is none.
pub(super) fn settled(
    status: &ExecutionStatus,
    task: &PeerTask,
    ended: &Result<Outcome, OutcomeError>,
) {
    let (server, task) = (&*status.server, &*task.id);
    match ended {
        Ok(_) => tracing::info!(target: AUDIT, task, server, "settled"),
        Err(why) => {
            tracing::info!(target: AUDIT, task, server, why = %why.brief(), "not settled");
        }
    }
}
