//! What a runner reports about its work: its status, and how to re-attach to it.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::{Effects, PUBLISH, Refused};
use crate::task::{Fields, ResumeState, TimelineEvent};

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
        .record(now, TimelineEvent::Status(message.clone()));
    fields.message = Some(message);
    Ok(PUBLISH.into())
}

pub(super) fn save_resume_state(
    fields: &mut Fields,
    state: ResumeState,
    now: Timestamp,
) -> Effects {
    fields.resume_state = Some(state);
    fields.timeline.record(now, TimelineEvent::ResumeStateSaved);
    Effects::default()
}
