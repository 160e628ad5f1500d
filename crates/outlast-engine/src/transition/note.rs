//! What a runner says about itself: its status, and how to find its work again.

use std::sync::Arc;

use outlast_wire::Timestamp;
use smallvec::smallvec;

use super::{Effect, Effects, Refused, Step, stored};
use crate::task::{Fields, Handle, Happening};

pub(super) fn status(
    mut fields: Fields,
    message: Arc<str>,
    now: Timestamp,
) -> Result<Step, Refused> {
    if fields.message.as_ref() == Some(&message) {
        return Err(Refused::Unchanged);
    }
    fields
        .timeline
        .note(now, Happening::Status(message.clone()));
    fields.message = Some(message);
    Ok(stored(fields, None, smallvec![Effect::Publish], now))
}

pub(super) fn attach(mut fields: Fields, handle: Handle, now: Timestamp) -> Result<Step, Refused> {
    fields.handle = Some(handle);
    fields.timeline.note(now, Happening::Attached);
    Ok(stored(fields, None, Effects::new(), now))
}
