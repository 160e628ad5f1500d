//! The end of a task: the outcome is summed up once, and everything that was open is closed.

use outlast_wire::Timestamp;

use super::{Change, OVER, wait_for};
use crate::outcome::{Message, Outcome};
use crate::task::{Fields, Happening, Keep, State};

pub(super) fn end(
    fields: &mut Fields,
    outcome: Outcome,
    message: Message,
    now: Timestamp,
) -> Change {
    wait_for(fields, Vec::new(), now);
    fields.state = State::Ended(outcome.ending());
    fields.asked.forget_answers();
    fields.handle = None;
    // The last word of the work is no description of its end.
    fields.message = message.or_else(|| outcome.message());
    if fields.lifetime.keep == Keep::WhileLive {
        let kept_after_the_end = now
            .since(fields.created)
            .saturating_add(fields.lifetime.granted);
        fields.lifetime.ttl = fields.lifetime.ttl.max(kept_after_the_end);
    }
    fields.timeline.note(now, Happening::Ended);
    Change {
        body: outcome.into_body(),
        effects: OVER.into(),
    }
}
