//! What a task stores about its input requests: the keys that were used, and responses until the
//! runner has confirmed them. Most tasks have none; then nothing is allocated.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::id::InputKey;
use crate::input::InputResponse;

/// The used input keys of a task and the responses that its runner has not confirmed. Revisions
/// share it. Dereferences to [`InputFields`].
#[derive(Clone, Debug, Default)]
pub struct InputHistory(Option<Arc<InputFields>>);

/// The contents of an [`InputHistory`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputFields {
    /// Every key that was used, whether or not it has a response.
    pub keys: BTreeSet<InputKey>,
    /// Responses that the runner has not confirmed yet.
    pub responses: BTreeMap<InputKey, InputResponse>,
}

impl InputHistory {
    /// A history with these contents, as a store reads it.
    pub fn new(keys: BTreeSet<InputKey>, responses: BTreeMap<InputKey, InputResponse>) -> Self {
        if keys.is_empty() && responses.is_empty() {
            Self(None)
        } else {
            Self(Some(Arc::new(InputFields { keys, responses })))
        }
    }

    pub(crate) fn forget_responses(&mut self) {
        if !self.responses.is_empty() {
            self.change().responses.clear();
        }
    }

    pub(crate) fn change(&mut self) -> &mut InputFields {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl Deref for InputHistory {
    type Target = InputFields;

    fn deref(&self) -> &InputFields {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl PartialEq for InputHistory {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

static NONE: InputFields = InputFields {
    keys: BTreeSet::new(),
    responses: BTreeMap::new(),
};
