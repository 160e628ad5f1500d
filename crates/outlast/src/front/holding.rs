//! Clients that take no tasks and do not wait for ever: how long each waits, and which of its calls still run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_engine::{Origin, Owner, Retry, TaskId};
use outlast_wire::object;

/// How calls are held for a client that takes no tasks. Each is stored when its grace window is over, so that neither a
/// disconnect nor a crash loses its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// How long the client waits for an answer.
    pub patience: Patience,
    /// Whether a client that stops waiting gets a *ticket*: a result that names the task, and tools to ask for it.
    pub tickets: bool,
}

/// How long a client waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as it takes.
    Endless,
    /// So long.
    Within(Duration),
    /// As long as it takes if it hears of progress this often, and so long if it gave no token for that.
    WhileItHears {
        /// How often.
        every: Duration,
        /// How long without a token.
        otherwise: Duration,
    },
}

impl Holding {
    /// For clients that take tasks and did not ask for one: they wait.
    pub(crate) const ENDLESS: Self = Self {
        patience: Patience::Endless,
        tickets: false,
    };

    /// How long a caller waits, and how often it must hear something meanwhile.
    pub(crate) fn terms(&self, has_token: bool) -> (Option<Duration>, Option<Duration>) {
        let limit = |limit| Some(limit).filter(|_| self.tickets);
        match self.patience {
            Patience::Endless => (None, None),
            Patience::Within(time) => (limit(time), None),
            Patience::WhileItHears { every, .. } if has_token => (None, Some(every)),
            Patience::WhileItHears { otherwise, .. } => (limit(otherwise), None),
        }
    }
}

/// Calls that were stored because they took long, by what was called: who repeats one finds it.
#[derive(Default)]
pub(crate) struct Held(Mutex<HashMap<Key, TaskId>>);

/// What was called, and by whom.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    owner: Owner,
    runner: String,
    tool: String,
    arguments: String,
}

impl Key {
    /// The key of a call that may be found again: one that could as well run twice.
    pub(crate) fn of(owner: &Owner, origin: &Origin) -> Option<Self> {
        if origin.retry != Retry::Rerun {
            return None;
        }
        let params = origin.params.as_ref()?;
        let arguments = object::find(params.borrow(), &["arguments"]);
        let arguments = arguments.and_then(|found| found.open::<serde_json::Value>().ok());
        Some(Self {
            owner: owner.clone(),
            runner: origin.runner.to_string(),
            tool: origin.tool.as_deref()?.to_owned(),
            // The order of members does not matter.
            arguments: arguments.unwrap_or_default().to_string(),
        })
    }
}

impl Held {
    pub(crate) fn find(&self, key: &Key) -> Option<TaskId> {
        self.lock().get(key).copied()
    }

    pub(crate) fn add(&self, key: Key, task: TaskId) {
        let mut held = self.lock();
        if held.len() < MOST {
            held.insert(key, task);
        }
    }

    /// Forgets a call that has ended, unless another has taken its place.
    pub(crate) fn remove(&self, key: &Key, task: TaskId) {
        let mut held = self.lock();
        if held.get(key) == Some(&task) {
            held.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, TaskId>> {
        // Every critical section is a map operation that does not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many calls are remembered.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_hears_of_progress_waits_for_ever() {
        let second = Duration::from_secs(1);
        let holding = |patience, tickets| Holding { patience, tickets };
        let hears = Patience::WhileItHears {
            every: second,
            otherwise: 9 * second,
        };
        assert_eq!(holding(hears, true).terms(true), (None, Some(second)));
        assert_eq!(holding(hears, true).terms(false), (Some(9 * second), None));
        let within = Patience::Within(second);
        assert_eq!(holding(within, true).terms(true), (Some(second), None));
        assert_eq!(holding(within, false).terms(true), (None, None));
        assert_eq!(Holding::ENDLESS.terms(true), (None, None));
    }
}
