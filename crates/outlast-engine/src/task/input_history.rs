//! The memory of a task's questions. Most tasks ask nothing; then it is nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::input::Answer;
use crate::id::AskKey;

/// The memory of a task's questions, shared between revisions. Read its [`Questions`].
#[derive(Clone, Debug, Default)]
pub struct Asked(Option<Arc<Questions>>);

/// What is remembered of questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    /// Every key ever used, answered or not.
    pub keys: BTreeSet<AskKey>,
    /// Answers that are stored but that the runner has not confirmed.
    pub answers: BTreeMap<AskKey, Answer>,
}

impl Asked {
    /// The memory that a store has kept.
    pub fn new(keys: BTreeSet<AskKey>, answers: BTreeMap<AskKey, Answer>) -> Self {
        if keys.is_empty() && answers.is_empty() {
            Self(None)
        } else {
            Self(Some(Arc::new(Questions { keys, answers })))
        }
    }

    pub(crate) fn forget_answers(&mut self) {
        if !self.answers.is_empty() {
            self.change().answers.clear();
        }
    }

    pub(crate) fn change(&mut self) -> &mut Questions {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl Deref for Asked {
    type Target = Questions;

    fn deref(&self) -> &Questions {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

static NONE: Questions = Questions {
    keys: BTreeSet::new(),
    answers: BTreeMap::new(),
};
