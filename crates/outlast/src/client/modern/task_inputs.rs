//! The questions of one task and what became of them: each is put once and answered once (V2-UPD-4), and none changes
//! its words under the same key (A2-21).

use std::collections::BTreeMap;

use outlast_wire::v2::{Answer, Ask};
use outlast_wire::{Raw, RawRef};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::input_dispatch::{Asker, Refused};

/// The questions of one task. Dropping this dismisses them.
pub(crate) struct Inputs {
    task: String,
    asker: Asker,
    on_unfit: OnUnfit,
    known: BTreeMap<String, Input>,
    asking: JoinSet<(String, Result<Raw, Refused>)>,
}

/// What becomes of a question that our host does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnUnfit {
    /// It is refused: we declared what we take when we made the task.
    Refuse,
    /// It is left to somebody else: others made the task (A2-22).
    Leave,
}

struct Input {
    ask: Ask,
    state: State,
}

enum State {
    Asked(AbortHandle),
    Answered(Raw),
    Delivered,
    /// The server does not wait for it (A2-23).
    Gone,
    /// Somebody else is to answer it.
    Left,
}

/// What no server may ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unaskable {
    /// A key names two questions.
    #[error("it asks two things under the key `{0}`")]
    Reused(String),
    /// There are more than anybody would answer (V1-ELIC-23).
    #[error("it asks {0} things at once")]
    TooMany(usize),
}

impl Inputs {
    pub(crate) fn new(task: String, asker: Asker, on_unfit: OnUnfit) -> Self {
        Self {
            task,
            asker,
            on_unfit,
            known: BTreeMap::new(),
            asking: JoinSet::new(),
        }
    }

    /// The server waits for exactly these. New ones are put to the host, those that are gone are dismissed.
    pub(crate) fn outstanding(&mut self, asks: Vec<Ask>) -> Result<(), Unaskable> {
        if asks.len() > AT_ONCE {
            return Err(Unaskable::TooMany(asks.len()));
        }
        for (key, input) in &mut self.known {
            if !asks.iter().any(|ask| ask.key == *key) {
                input.close();
            }
        }
        for ask in asks {
            match self.known.get(&ask.key) {
                Some(input) if !same(&input.ask, &ask) => return Err(Unaskable::Reused(ask.key)),
                Some(input) if !matches!(input.state, State::Gone) => {}
                // New, or waited for again after all.
                _ => self.put(ask),
            }
        }
        Ok(())
    }

    fn put(&mut self, ask: Ask) {
        let key = ask.key.clone();
        let left = self.on_unfit == OnUnfit::Leave && self.asker.judge(&ask).is_err();
        let state = if left {
            State::Left
        } else {
            let (asker, task, asked) = (self.asker.clone(), self.task.clone(), ask.clone());
            let key = key.clone();
            State::Asked(
                self.asking
                    .spawn(async move { (key, asker.put(asked, Some(task)).await) }),
            )
        };
        self.known.insert(key, Input { ask, state });
    }

    /// Takes note of the next answer of the host; never, if nothing is asked. Fails if it is refused.
    pub(crate) async fn answered(&mut self) -> Result<(), Refused> {
        loop {
            let (key, answer) = match self.asking.join_next().await {
                Some(Ok(answered)) => answered,
                // Dismissed.
                Some(Err(_)) => continue,
                None => std::future::pending().await,
            };
            let Some(input) = self.known.get_mut(&key) else {
                continue;
            };
            if matches!(input.state, State::Asked(_)) {
                input.state = State::Answered(answer?);
                return Ok(());
            }
        }
    }

    /// Answers that the server has yet to get.
    pub(crate) fn ready(&self) -> Vec<Answer> {
        let ready = |(key, input): (&String, &Input)| match &input.state {
            State::Answered(result) => Some(Answer {
                key: key.clone(),
                result: result.clone(),
            }),
            _ => None,
        };
        self.known.iter().filter_map(ready).collect()
    }

    /// The server has these.
    pub(crate) fn delivered(&mut self, answers: &[Answer]) {
        for answer in answers {
            if let Some(input) = self.known.get_mut(&answer.key) {
                input.state = State::Delivered;
            }
        }
    }
}

impl Input {
    fn close(&mut self) {
        match &self.state {
            State::Asked(asking) => {
                asking.abort();
                self.state = State::Gone;
            }
            State::Answered(_) | State::Left => self.state = State::Gone,
            State::Delivered | State::Gone => {}
        }
    }
}

/// The most questions of a server that wait at the same time.
pub(super) const AT_ONCE: usize = 256;

/// Whether two questions are one, however they are written.
fn same(one: &Ask, other: &Ask) -> bool {
    let params = |ask: &Ask| {
        ask.params
            .as_ref()
            .map(Raw::borrow)
            .map(RawRef::open::<Value>)
    };
    one == other
        || one.method == other.method
            && match (params(one), params(other)) {
                (Some(Ok(one)), Some(Ok(other))) => one == other,
                _ => false,
            }
}
