//! Questions and answers: a key is used once, an answer is kept until the runner confirms it.

use std::collections::BTreeMap;

use outlast_wire::Timestamp;

use super::{Effect, Effects, PUBLISH, Refused, questions, wait_for};
use crate::input::{Answer, Question};
use crate::id::AskKey;
use crate::task::{Fields, Happening};

pub(super) fn ask(
    fields: &mut Fields,
    key: AskKey,
    question: Question,
    limit: usize,
    now: Timestamp,
) -> Result<Effects, Refused> {
    if fields.asked.keys.len() >= limit {
        return Err(Refused::TooManyQuestions { limit });
    }
    if !fields.asked.change().keys.insert(key.clone()) {
        return Err(Refused::KeyReused(key));
    }
    let mut open = questions(fields);
    open.push((key.clone(), question));
    wait_for(fields, open, now);
    fields.timeline.note(now, Happening::Asked(key));
    Ok(PUBLISH.into())
}

pub(super) fn withdraw(
    fields: &mut Fields,
    key: AskKey,
    now: Timestamp,
) -> Result<Effects, Refused> {
    let mut open = questions(fields);
    let before = open.len();
    open.retain(|(found, _)| *found != key);
    if open.len() == before {
        return Err(Refused::NotOutstanding);
    }
    wait_for(fields, open, now);
    fields.timeline.note(now, Happening::Withdrawn(key));
    Ok(PUBLISH.into())
}

pub(super) fn answer(
    fields: &mut Fields,
    mut given: BTreeMap<AskKey, Answer>,
    now: Timestamp,
) -> Result<Effects, Refused> {
    let mut effects = PUBLISH.to_vec();
    let mut open = questions(fields);
    open.retain(|(key, _)| match given.remove(key) {
        None => true,
        Some(answer) => {
            fields.asked.change().answers.insert(key.clone(), answer);
            fields.timeline.note(now, Happening::Answered(key.clone()));
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

pub(super) fn confirm(fields: &mut Fields, key: &AskKey) -> Result<Effects, Refused> {
    if !fields.asked.answers.contains_key(key) {
        return Err(Refused::NotOutstanding);
    }
    fields.asked.change().answers.remove(key);
    Ok(Effects::default())
}
