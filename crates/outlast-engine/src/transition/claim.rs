//! A takeover after the executor died: a new attempt, so that whatever the old one still says is refused.

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Takeover, questions, wait_for};
use crate::id::NodeId;
use crate::task::{Fields, Happening};

pub(super) fn claim(
    fields: &mut Fields,
    executor: NodeId,
    how: Takeover,
    now: Timestamp,
) -> Effects {
    fields.executor = executor;
    fields.attempt = fields.attempt.next();
    fields
        .timeline
        .note(now, Happening::Claimed(fields.attempt));
    if how == Takeover::Rerun {
        for (key, _) in questions(fields) {
            fields.timeline.note(now, Happening::Withdrawn(key));
        }
        fields.asked.forget_answers();
        wait_for(fields, Vec::new(), now);
        fields.handle = None;
        fields.message = None;
    }
    PUBLISH.into()
}
