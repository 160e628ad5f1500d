//! The two ways to cancel: immediately, and by a request to the work.

use outlast_wire::Timestamp;

use super::{CommandResult, Effect, Effects, Refused, end};
use crate::outcome::Outcome;
use crate::task::{CancelIntent, Fields, TimelineEvent};

/// V1-CANCEL-3, V1-CANCEL-4: the task is cancelled before the response is sent, whatever the work
/// does later.
pub(super) fn now(fields: &mut Fields, now: Timestamp) -> CommandResult {
    end::end(fields, Outcome::Cancelled, None, now)
}

/// V2-CANCEL-4, V2-CANCEL-5: the work is notified, and decides until `deadline` how the task ends.
pub(super) fn request(
    fields: &mut Fields,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<Effects, Refused> {
    if fields.cancel.is_some() {
        return Err(Refused::Unchanged);
    }
    fields.cancel = Some(CancelIntent {
        requested: now,
        deadline,
    });
    fields.timeline.record(now, TimelineEvent::CancelRequested);
    Ok(NOTIFY_CANCEL.into())
}

const NOTIFY_CANCEL: &[Effect] = &[Effect::Publish, Effect::NotifyCancel];
