//! Detached work: the task has no executor, and a new attempt, so that writes of its former runner
//! are refused.

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Refused};
use crate::id::NodeId;
use crate::task::{Fields, ResumeState, TimelineEvent};

pub(super) fn detach(
    fields: &mut Fields,
    state: ResumeState,
    limit_ms: Option<u64>,
    now: Timestamp,
) -> Effects {
    fields.executor = NodeId::DETACHED;
    fields.attempt = fields.attempt.next();
    fields.resume_state = Some(state);
    if let Some(limit_ms) = limit_ms {
        fields.lifetime.run_limit_ms = Some(run_limit_from(fields, limit_ms, now));
    }
    fields.timeline.record(now, TimelineEvent::Detached);
    PUBLISH.into()
}

pub(super) fn heartbeat(
    fields: &mut Fields,
    limit_ms: u64,
    now: Timestamp,
) -> Result<Effects, Refused> {
    let run_limit_ms = run_limit_from(fields, limit_ms, now);
    if fields.lifetime.run_limit_ms == Some(run_limit_ms) {
        return Err(Refused::Unchanged);
    }
    fields.lifetime.run_limit_ms = Some(run_limit_ms);
    Ok(Effects::default())
}

/// The run limit that ends the work `limit_ms` after `now`. It counts from the creation, without
/// the time spent awaiting input.
fn run_limit_from(fields: &Fields, limit_ms: u64, now: Timestamp) -> u64 {
    let lifetime = &fields.lifetime;
    let waits = lifetime.waiting_since.map_or(0, |since| now.since(since));
    let waited = lifetime.waited_ms.saturating_add(waits);
    let worked = now.since(fields.created).saturating_sub(waited);
    worked.saturating_add(limit_ms)
}
