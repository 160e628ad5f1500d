//! Deadlines: expiry, extension, the run limit, and the timeout of a requested cancellation.

use outlast_wire::Timestamp;

use super::{CommandResult, Effect, Effects, Next, PUBLISH, Refused, Step, end};
use crate::outcome::{ErrorCode, Outcome};
use crate::task::{Fields, TimelineEvent};

/// A1-23: waiters are answered, the work is stopped, then the task is removed.
pub(super) fn removal() -> Step {
    Step {
        next: Next::Removed,
        effects: AFTER_REMOVAL.into(),
    }
}

/// Handles a deadline of [`Task::due`](crate::Task::due) that has passed, for a task that is not
/// removed.
pub(super) fn due(fields: &mut Fields, now: Timestamp) -> Result<CommandResult, Refused> {
    let ended = fields.state.ending().is_some();
    if !ended && fields.cancel.is_some_and(|intent| now >= intent.deadline) {
        return Ok(end::end(fields, Outcome::Cancelled, None, now));
    }
    let limit = fields.lifetime.run_limit_at(fields.created, &fields.state);
    if limit.is_some_and(|at| now >= at) {
        let limit = fields.lifetime.run_limit_ms.unwrap_or_default();
        let message =
            format!("the call ran longer than its run limit of {limit} ms and was stopped");
        return Ok(end::end(
            fields,
            Outcome::error(INTERNAL_ERROR, message),
            None,
            now,
        ));
    }
    if now >= fields.expires() {
        let age = now.since(fields.created);
        let ttl = age.saturating_add(fields.lifetime.granted_ttl_ms.max(1));
        return extend(fields, ttl, now).map(CommandResult::from);
    }
    Err(Refused::NotDue)
}

pub(super) fn extend(fields: &mut Fields, ttl: u64, now: Timestamp) -> Result<Effects, Refused> {
    if ttl == fields.lifetime.ttl_ms {
        return Err(Refused::Unchanged);
    }
    fields.lifetime.ttl_ms = ttl;
    fields.timeline.record(now, TimelineEvent::Extended(ttl));
    Ok(PUBLISH.into())
}

const AFTER_REMOVAL: &[Effect] = &[Effect::Wake, Effect::Stop];

const INTERNAL_ERROR: ErrorCode = ErrorCode(-32603);
