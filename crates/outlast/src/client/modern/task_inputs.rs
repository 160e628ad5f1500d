//! The questions of one task and what became of them: each is put once and answered once (V2-UPD-4), and none changes
//! its words under the same key (A2-21).

use std::collections::BTreeMap;

use outlast_wire::v2::{Answer, Ask};
use outlast_wire::{Raw, RawRef};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::input_dispatch::{InputDispatcher, InputRefusal};

/// The questions of one task. Dropping this dismisses them.
pub(crate) struct TaskInputs {
    task: String,
    dispatcher: InputDispatcher,
    on_unfit: OnInvalid,
    inputs: BTreeMap<String, TrackedInput>,
    asking: JoinSet<(String, Result<Raw, InputRefusal>)>,
}

/// What becomes of a question that our host does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnInvalid {
    /// It is refused: we declared what we take when we made the task.
    Refuse,
    /// It is left to somebody else: others made the task (A2-22).
    Ignore,
}

struct TrackedInput {
    ask: Ask,
    state: InputState,
}

enum InputState {
    Pending(AbortHandle),
    Responded(Raw),
    Delivered,
    /// The server does not wait for it (A2-23).
    Withdrawn,
    /// Somebody else is to answer it.
    Ignored,
}

/// What no server may ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InputProtocolError {
    /// A key names two questions.
    #[error("it asks two things under the key `{0}`")]
    ReusedKey(String),
    /// There are more than anybody would answer (V1-ELIC-23).
    #[error("it asks {0} things at once")]
    TooMany(usize),
}

impl TaskInputs {
    pub(crate) fn new(task: String, dispatcher: InputDispatcher, on_unfit: OnInvalid) -> Self {
        Self {
            task,
            dispatcher,
            on_unfit,
            inputs: BTreeMap::new(),
            asking: JoinSet::new(),
        }
    }

    /// The server waits for exactly these. New ones are put to the host, those that are gone are dismissed.
    pub(crate) fn outstanding(&mut self, asks: Vec<Ask>) -> Result<(), InputProtocolError> {
        if asks.len() > MAX_OPEN_INPUTS {
            return Err(InputProtocolError::TooMany(asks.len()));
        }
        for (key, input) in &mut self.inputs {
            if !asks.iter().any(|ask| ask.key == *key) {
                input.close();
            }
        }
        for ask in asks {
            match self.inputs.get(&ask.key) {
                Some(input) if !same(&input.ask, &ask) => {
                    return Err(InputProtocolError::ReusedKey(ask.key));
                }
                Some(input) if !matches!(input.state, InputState::Withdrawn) => {}
                // New, or waited for again after all.
                _ => self.put(ask),
            }
        }
        Ok(())
    }

    fn put(&mut self, ask: Ask) {
        let key = ask.key.clone();
        let left = self.on_unfit == OnInvalid::Ignore && self.dispatcher.validate(&ask).is_err();
        let state = if left {
            InputState::Ignored
        } else {
            let (dispatcher, task, asked) =
                (self.dispatcher.clone(), self.task.clone(), ask.clone());
            let key = key.clone();
            InputState::Pending(
                self.asking
                    .spawn(async move { (key, dispatcher.dispatch(asked, Some(task)).await) }),
            )
        };
        self.inputs.insert(key, TrackedInput { ask, state });
    }

    /// Takes note of the next answer of the host; never, if nothing is asked. Fails if it is refused.
    pub(crate) async fn answered(&mut self) -> Result<(), InputRefusal> {
        loop {
            let (key, answer) = match self.asking.join_next().await {
                Some(Ok(answered)) => answered,
                // Dismissed.
                Some(Err(_)) => continue,
                None => std::future::pending().await,
            };
            let Some(input) = self.inputs.get_mut(&key) else {
                continue;
            };
            if matches!(input.state, InputState::Pending(_)) {
                input.state = InputState::Responded(answer?);
                return Ok(());
            }
        }
    }

    /// Answers that the server has yet to get.
    pub(crate) fn ready(&self) -> Vec<Answer> {
        let ready = |(key, input): (&String, &TrackedInput)| match &input.state {
            InputState::Responded(result) => Some(Answer {
                key: key.clone(),
                result: result.clone(),
            }),
            _ => None,
        };
        self.inputs.iter().filter_map(ready).collect()
    }

    /// The server has these.
    pub(crate) fn delivered(&mut self, answers: &[Answer]) {
        for answer in answers {
            if let Some(input) = self.inputs.get_mut(&answer.key) {
                input.state = InputState::Delivered;
            }
        }
    }
}

impl TrackedInput {
    fn close(&mut self) {
        match &self.state {
            InputState::Pending(asking) => {
                asking.abort();
                self.state = InputState::Withdrawn;
            }
            InputState::Responded(_) | InputState::Ignored => self.state = InputState::Withdrawn,
            InputState::Delivered | InputState::Withdrawn => {}
        }
    }
}

/// The most questions of a server that wait at the same time.
pub(super) const MAX_OPEN_INPUTS: usize = 256;

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
