//! Who answered an input request of a task in the store. The engine ignores a second answer; its
//! sender learns here who was first.

use std::collections::VecDeque;
use std::sync::Arc;

use outlast::task::{InputKey, TaskId};
use parking_lot::Mutex;

/// The last answers, oldest first.
#[derive(Default)]
pub(crate) struct Answered(Mutex<VecDeque<(TaskId, InputKey, Arc<str>)>>);

impl Answered {
    /// Records an answer by `by`. Returns the first sender, if it was another one.
    pub(crate) fn claim(&self, task: TaskId, key: InputKey, by: Arc<str>) -> Option<Arc<str>> {
        let mut answers = self.0.lock();
        if let Some((_, _, who)) = answers
            .iter()
            .find(|(of, with, _)| *of == task && *with == key)
        {
            return Some(who.clone());
        }
        if answers.len() >= MAX_STORED_ANSWERS {
            answers.pop_front();
        }
        answers.push_back((task, key, by));
        None
    }

    /// Who answered.
    pub(crate) fn who(&self, task: TaskId, key: &InputKey) -> Option<Arc<str>> {
        let answers = self.0.lock();
        let mut answers = answers.iter();
        let found = answers.find(|(of, with, _)| *of == task && with == key);
        found.map(|(_, _, who)| who.clone())
    }

    /// Forgets an answer that was not stored.
    pub(crate) fn forget(&self, task: TaskId, key: &InputKey) {
        self.0
            .lock()
            .retain(|(of, with, _)| *of != task || with != key);
    }
}

/// How many answers are remembered.
const MAX_STORED_ANSWERS: usize = 1_000;
