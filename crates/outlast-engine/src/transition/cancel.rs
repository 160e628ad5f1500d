//! Two ways to cancel: at once, and by asking the work to stop.

use outlast_wire::Timestamp;

use super::{Change, Effect, Effects, Refused, end};
use crate::outcome::Outcome;
use crate::task::{CancelIntent, Fields, Happening};

/// V1-CANCEL-3, V1-CANCEL-4: the task is cancelled before the answer, whatever the work does later.
pub(super) fn now(fields: &mut Fields, now: Timestamp) -> Change {
    end::end(fields, Outcome::Cancelled, None, now)
}

/// V2-CANCEL-4, V2-CANCEL-5: the work is told, and decides how the task ends until `deadline`.
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
    fields.timeline.note(now, Happening::CancelRequested);
    Ok(TELL_CANCEL.into())
}

const TELL_CANCEL: &[Effect] = &[Effect::Publish, Effect::TellCancel];
