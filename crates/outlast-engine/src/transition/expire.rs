//! Time: expiry, extension, the run limit, and the end of patience with a silent runner.

use outlast_wire::Timestamp;

use super::{Change, Effect, Effects, Next, PUBLISH, Refused, Step, end};
use crate::outcome::{ErrorCode, Outcome};
use crate::task::{Fields, Happening};

/// A1-23: those who wait are answered, the work is stopped, then the task is gone.
pub(super) fn removal() -> Step {
    Step {
        next: Next::Removed,
        effects: GONE.into(),
    }
}

/// Does what [`Task::due`](crate::Task::due) announced, if the moment has come, to a task that stays.
pub(super) fn due(fields: &mut Fields, now: Timestamp) -> Result<Change, Refused> {
    let ended = fields.state.ending().is_some();
    if !ended && fields.cancel.is_some_and(|intent| now >= intent.deadline) {
        return Ok(end::end(fields, Outcome::Cancelled, None, now));
    }
    let limit = fields.lifetime.run_limit_at(fields.created, &fields.state);
    if limit.is_some_and(|at| now >= at) {
        let limit = fields.lifetime.run_limit.unwrap_or_default();
        let message =
            format!("the call ran longer than its run limit of {limit} ms and was stopped");
        return Ok(end::end(
            fields,
            Outcome::error(INTERNAL, message),
            None,
            now,
        ));
    }
    if now >= fields.expires() {
        let lived = now.since(fields.created);
        let ttl = lived.saturating_add(fields.lifetime.granted.max(1));
        return extend(fields, ttl, now).map(Change::from);
    }
    Err(Refused::NotDue)
}

pub(super) fn extend(fields: &mut Fields, ttl: u64, now: Timestamp) -> Result<Effects, Refused> {
    if ttl == fields.lifetime.ttl {
        return Err(Refused::Unchanged);
    }
    fields.lifetime.ttl = ttl;
    fields.timeline.note(now, Happening::Extended(ttl));
    Ok(PUBLISH.into())
}

const GONE: &[Effect] = &[Effect::Wake, Effect::Stop];

const INTERNAL: ErrorCode = ErrorCode(-32603);
