//! Time: expiry, extension, the run limit, and the end of patience with a silent runner.

use outlast_wire::Timestamp;
use smallvec::smallvec;

use super::{Effect, Next, Refused, Step, end, stored};
use crate::outcome::{ErrorCode, Outcome};
use crate::task::{Fields, Happening, State, Task};

/// Does what [`Task::due`] announced, if the moment has come.
pub(super) fn due(task: Task, now: Timestamp) -> Result<Step, Refused> {
    let ended = matches!(task.state, State::Ended(_));
    let past_limit = task
        .lifetime
        .run_limit_at(task.created, &task.state)
        .is_some_and(|at| now >= at);
    let past_patience = !ended && task.cancel.is_some_and(|intent| now >= intent.deadline);

    if task.is_gone(now) {
        // A1-23: those who wait are answered, the work is stopped, then the task is gone.
        return Ok(Step {
            next: Next::Removed,
            effects: smallvec![Effect::Wake, Effect::Stop],
        });
    }
    if past_patience {
        return Ok(end::end(task.into_fields(), Outcome::Cancelled, now));
    }
    if past_limit {
        let limit = task.lifetime.run_limit.unwrap_or_default();
        let message =
            format!("the call ran longer than its run limit of {limit} ms and was stopped");
        return Ok(end::end(
            task.into_fields(),
            Outcome::error(INTERNAL, message),
            now,
        ));
    }
    if now >= task.expires() {
        let fields = task.into_fields();
        let lived = now.since(fields.created);
        let ttl = lived.saturating_add(fields.lifetime.granted.max(1));
        return extend(fields, ttl, now);
    }
    Err(Refused::NotDue)
}

pub(super) fn extend(mut fields: Fields, ttl: u64, now: Timestamp) -> Result<Step, Refused> {
    if ttl == fields.lifetime.ttl {
        return Err(Refused::Unchanged);
    }
    fields.lifetime.ttl = ttl;
    fields.timeline.note(now, Happening::Extended(ttl));
    Ok(stored(fields, None, smallvec![Effect::Publish], now))
}

const INTERNAL: ErrorCode = ErrorCode(-32603);
