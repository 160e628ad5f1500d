//! Input requests and responses: a key is used once, a response is stored until the runner confirms
//! it.

use std::collections::BTreeMap;

use outlast_wire::Timestamp;

use super::{Effect, Effects, PUBLISH, Refused, open_requests, wait_for};
use crate::id::InputKey;
use crate::input::{InputRequest, InputResponse};
use crate::task::{Fields, TimelineEvent};

pub(super) fn request(
    fields: &mut Fields,
    key: InputKey,
    request: InputRequest,
    limit: usize,
    now: Timestamp,
) -> Result<Effects, Refused> {
    if fields.input.keys.len() >= limit {
        return Err(Refused::TooManyInputRequests { limit });
    }
    if !fields.input.change().keys.insert(key.clone()) {
        return Err(Refused::KeyReused(key));
    }
    let mut open = open_requests(fields);
    open.push((key.clone(), request));
    wait_for(fields, open, now);
    fields
        .timeline
        .record(now, TimelineEvent::InputRequested(key));
    Ok(PUBLISH.into())
}

pub(super) fn withdraw(
    fields: &mut Fields,
    key: InputKey,
    now: Timestamp,
) -> Result<Effects, Refused> {
    let mut open = open_requests(fields);
    let before = open.len();
    open.retain(|(found, _)| *found != key);
    if open.len() == before {
        return Err(Refused::NotOutstanding);
    }
    wait_for(fields, open, now);
    fields
        .timeline
        .record(now, TimelineEvent::InputWithdrawn(key));
    Ok(PUBLISH.into())
}

pub(super) fn provide(
    fields: &mut Fields,
    mut responses: BTreeMap<InputKey, InputResponse>,
    now: Timestamp,
) -> Result<Effects, Refused> {
    let mut effects = PUBLISH.to_vec();
    let mut open = open_requests(fields);
    open.retain(|(key, _)| match responses.remove(key) {
        None => true,
        Some(response) => {
            fields
                .input
                .change()
                .responses
                .insert(key.clone(), response);
            fields
                .timeline
                .record(now, TimelineEvent::InputProvided(key.clone()));
            effects.push(Effect::Deliver(key.clone()));
            false
        }
    });
    if effects.len() == 1 {
        return Err(Refused::NotOutstanding);
    }
    wait_for(fields, open, now);
    Ok(effects.into())
}

pub(super) fn confirm(fields: &mut Fields, key: &InputKey) -> Result<Effects, Refused> {
    if !fields.input.responses.contains_key(key) {
        return Err(Refused::NotOutstanding);
    }
    fields.input.change().responses.remove(key);
    Ok(Effects::default())
}
