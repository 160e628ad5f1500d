//! What a runner says about itself: its status, and how to find its work again.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Refused};
use crate::task::{Fields, Handle, Happening};

pub(super) fn status(
    fields: &mut Fields,
    message: Arc<str>,
    now: Timestamp,
) -> Result<Effects, Refused> {
    if fields.message.as_ref() == Some(&message) {
        return Err(Refused::Unchanged);
    }
    fields
        .timeline
        .note(now, Happening::Status(message.clone()));
    fields.message = Some(message);
    Ok(PUBLISH.into())
}

pub(super) fn attach(fields: &mut Fields, handle: Handle, now: Timestamp) -> Effects {
    fields.handle = Some(handle);
    fields.timeline.note(now, Happening::Attached);
    Effects::default()
}
