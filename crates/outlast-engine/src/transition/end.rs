//! The end of a task: stores the ending and closes all that was open.

use outlast_wire::Timestamp;

use super::{AFTER_END, CommandResult, wait_for};
use crate::outcome::{Outcome, StatusMessage};
use crate::task::{Fields, State, TimelineEvent, TtlPolicy};

pub(super) fn end(
    fields: &mut Fields,
    outcome: Outcome,
    message: StatusMessage,
    now: Timestamp,
) -> CommandResult {
    wait_for(fields, Vec::new(), now);
    fields.state = State::Ended(outcome.ending());
    fields.input.forget_responses();
    fields.resume_state = None;
    // A status message of the running work does not describe its end.
    fields.message = message.or_else(|| outcome.message());
    if fields.lifetime.ttl_policy == TtlPolicy::KeepLive {
        let ttl_after_the_end = now
            .since(fields.created)
            .saturating_add(fields.lifetime.granted_ttl_ms);
        fields.lifetime.ttl_ms = fields.lifetime.ttl_ms.max(ttl_after_the_end);
    }
    fields.timeline.record(now, TimelineEvent::Ended);
    CommandResult {
        body: outcome.into_body(),
        effects: AFTER_END.into(),
    }
}
