//! Detached work: the task has no executor, and a new attempt, so that writes of its former runner
//! are refused.

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Refused};
use crate::id::NodeId;
use crate::task::{Fields, ResumeState, TimelineEvent};

pub(super) fn detach(
    fields: &mut Fields,
    state: ResumeState,
    run_limit_ms: Option<u64>,
    now: Timestamp,
) -> Effects {
    fields.executor = NodeId::DETACHED;
    fields.attempt = fields.attempt.next();
    fields.resume_state = Some(state);
    fields.lifetime.run_limit_ms = run_limit_ms.or(fields.lifetime.run_limit_ms);
    fields.timeline.record(now, TimelineEvent::Detached);
    PUBLISH.into()
}

pub(super) fn heartbeat(fields: &mut Fields, run_limit_ms: u64) -> Result<Effects, Refused> {
    if fields.lifetime.run_limit_ms == Some(run_limit_ms) {
        return Err(Refused::Unchanged);
    }
    fields.lifetime.run_limit_ms = Some(run_limit_ms);
    Ok(Effects::default())
}
