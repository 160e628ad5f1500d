//! A takeover after the executor was lost: a new attempt, so that writes of the old executor are
//! refused.

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Takeover, open_requests, wait_for};
use crate::id::NodeId;
use crate::task::{Fields, TimelineEvent};

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
        .record(now, TimelineEvent::Claimed(fields.attempt));
    if how == Takeover::Rerun {
        for (key, _) in open_requests(fields) {
            fields
                .timeline
                .record(now, TimelineEvent::InputWithdrawn(key));
        }
        fields.input.forget_responses();
        wait_for(fields, Vec::new(), now);
        fields.resume_state = None;
        fields.message = None;
    }
    PUBLISH.into()
}
