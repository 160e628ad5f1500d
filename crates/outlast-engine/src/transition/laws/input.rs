//! Input requests and responses, compared with a simple model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::scripts::{MAX_INPUT_REQUESTS, ScriptStep, history};
use crate::id::InputKey;
use crate::input::InputResponse;
use crate::task::{State, Task};
use crate::transition::{Command, Effect, Takeover};

/// The expected input requests and responses of a task.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    open: Vec<InputKey>,
    used: BTreeSet<InputKey>,
    kept: BTreeMap<InputKey, InputResponse>,
}

impl Model {
    fn of(task: &Task) -> Self {
        let open = task.outstanding().into_iter().flat_map(|open| open.iter());
        Self {
            open: open.map(|(key, _)| key.clone()).collect(),
            used: task.input.keys.clone(),
            kept: task.input.responses.clone(),
        }
    }

    /// The model after `command` was applied.
    fn after(mut self, command: &Command) -> Self {
        match command {
            Command::RequestInput { key, .. } => {
                self.used.insert(key.clone());
                self.open.push(key.clone());
            }
            Command::WithdrawInput { key, .. } => self.open.retain(|open| open != key),
            Command::ProvideInput(answers) => {
                let known = answers.iter().filter(|(key, _)| self.open.contains(key));
                self.kept
                    .extend(known.map(|(key, answer)| (key.clone(), answer.clone())));
                self.open.retain(|key| !answers.contains_key(key));
            }
            Command::ConfirmInput { key, .. } => drop(self.kept.remove(key)),
            Command::Claim {
                how: Takeover::Rerun,
                ..
            }
            | Command::CancelNow
            | Command::End { .. } => {
                self.open.clear();
                self.kept.clear();
            }
            _ => {}
        }
        self
    }
}

proptest! {
    // V1-INPUT-1, V1-INPUT-4, V1-INPUT-8, V1-INPUT-11, V2-UPD-12, V2-UPD-13. A response is stored
    // until it is confirmed and dropped at the end. A re-run withdraws the input requests and never
    // frees their keys. A re-attachment keeps everything.
    #[test]
    fn input_requests_and_responses_match_the_model(history in history()) {
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            let mut expected = Model::of(before).after(&event.command);
            if next.state.ending().is_some() {
                expected.open.clear();
                expected.kept.clear();
            }
            prop_assert_eq!(Model::of(next), expected, "after {:?}", event.command);
        }
    }

    // V2-UPD-5, V2-UPD-6.
    #[test]
    fn an_input_key_is_used_once(history in history()) {
        let mut used = BTreeSet::new();
        for event in history.iter().filter(|event| event.stored().is_some()) {
            if let Command::RequestInput { key, .. } = &event.command {
                prop_assert!(used.insert(key.clone()), "{} was used twice", key);
            }
        }
        prop_assert!(used.len() <= MAX_INPUT_REQUESTS);
    }

    #[test]
    fn a_task_awaits_input_exactly_while_a_request_is_open(history in history()) {
        for (_, next) in history.iter().filter_map(ScriptStep::stored) {
            match &next.state {
                State::AwaitingInput(outstanding) => prop_assert!(outstanding.iter().len() > 0),
                State::Working | State::Ended(_) => prop_assert_eq!(next.outstanding(), None),
            }
            let waits = next.outstanding().is_some();
            prop_assert_eq!(next.lifetime.waiting_since.is_some(), waits);
        }
    }

    // P6: the runner receives every stored input response.
    #[test]
    fn every_stored_input_response_is_delivered(history in history()) {
        for event in &history {
            let (Ok(step), Some((before, next))) = (&event.reply, event.stored()) else { continue };
            let new = next.input.responses.keys().filter(|key| !before.input.responses.contains_key(*key));
            let reply = step.effects.iter().filter_map(|effect| match effect {
                Effect::Deliver(key) => Some(key),
                _ => None,
            });
            prop_assert_eq!(new.collect::<BTreeSet<_>>(), reply.collect::<BTreeSet<_>>());
        }
    }
}
