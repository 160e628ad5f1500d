//! The input requests of one task and their state. Each is dispatched once and gets one response
//! (V2-UPD-4). A key must not be reused for another request (A2-21).

use std::collections::BTreeMap;

use outlast_wire::v2::{InputRequestEntry, InputResponseEntry};
use outlast_wire::{Raw, RawRef};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::input_dispatch::{InputDispatcher, InputRefusal};

/// The input requests of one task. Dropping this withdraws them from the handler.
pub(crate) struct TaskInputs {
    task: String,
    dispatcher: InputDispatcher,
    on_unfit: OnInvalid,
    inputs: BTreeMap<String, TrackedInput>,
    dispatched: JoinSet<(String, Result<Raw, InputRefusal>)>,
}

/// What to do with an input request that the handler does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnInvalid {
    /// Refuse it: this client declared what it accepts when it created the task.
    Refuse,
    /// Ignore it: another client created the task (A2-22).
    Ignore,
}

struct TrackedInput {
    input_request: InputRequestEntry,
    state: InputState,
}

enum InputState {
    Pending(AbortHandle),
    Responded(Raw),
    Delivered,
    /// The server no longer waits for it (A2-23).
    Withdrawn,
    /// Another client responds to it.
    Ignored,
}

/// A protocol violation of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InputProtocolError {
    /// Two input requests have the same key.
    #[error("two input requests have the key `{0}`")]
    ReusedKey(String),
    /// Too many input requests wait at the same time (V1-ELIC-23).
    #[error("{0} input requests at once are too many")]
    TooMany(usize),
}

impl TaskInputs {
    pub(crate) fn new(task: String, dispatcher: InputDispatcher, on_unfit: OnInvalid) -> Self {
        Self {
            task,
            dispatcher,
            on_unfit,
            inputs: BTreeMap::new(),
            dispatched: JoinSet::new(),
        }
    }

    /// Sets the input requests that the server waits for. New ones are dispatched, missing ones are
    /// withdrawn.
    pub(crate) fn set_outstanding(
        &mut self,
        asks: Vec<InputRequestEntry>,
    ) -> Result<(), InputProtocolError> {
        if asks.len() > MAX_OPEN_INPUTS {
            return Err(InputProtocolError::TooMany(asks.len()));
        }
        for (key, input) in &mut self.inputs {
            if !asks.iter().any(|input_request| input_request.key == *key) {
                input.close();
            }
        }
        for input_request in asks {
            match self.inputs.get(&input_request.key) {
                Some(input) if !same(&input.input_request, &input_request) => {
                    return Err(InputProtocolError::ReusedKey(input_request.key));
                }
                Some(input) if !matches!(input.state, InputState::Withdrawn) => {}
                // It is new, or the server waits for it again.
                _ => self.add(input_request),
            }
        }
        Ok(())
    }

    fn add(&mut self, input_request: InputRequestEntry) {
        let key = input_request.key.clone();
        let ignored =
            self.on_unfit == OnInvalid::Ignore && self.dispatcher.validate(&input_request).is_err();
        let state = if ignored {
            InputState::Ignored
        } else {
            let (dispatcher, task, request) = (
                self.dispatcher.clone(),
                self.task.clone(),
                input_request.clone(),
            );
            let key = key.clone();
            InputState::Pending(
                self.dispatched
                    .spawn(async move { (key, dispatcher.dispatch(request, Some(task)).await) }),
            )
        };
        self.inputs.insert(
            key,
            TrackedInput {
                input_request,
                state,
            },
        );
    }

    /// Waits for the next response of the handler; pending forever if nothing is dispatched. Fails
    /// if the handler refuses.
    pub(crate) async fn next_response(&mut self) -> Result<(), InputRefusal> {
        loop {
            let (key, response) = match self.dispatched.join_next().await {
                Some(Ok(answered)) => answered,
                // The input request was withdrawn.
                Some(Err(_)) => continue,
                None => std::future::pending().await,
            };
            let Some(input) = self.inputs.get_mut(&key) else {
                continue;
            };
            if matches!(input.state, InputState::Pending(_)) {
                input.state = InputState::Responded(response?);
                return Ok(());
            }
        }
    }

    /// The responses that are not delivered yet.
    pub(crate) fn ready(&self) -> Vec<InputResponseEntry> {
        let ready = |(key, input): (&String, &TrackedInput)| match &input.state {
            InputState::Responded(result) => Some(InputResponseEntry {
                key: key.clone(),
                result: result.clone(),
            }),
            _ => None,
        };
        self.inputs.iter().filter_map(ready).collect()
    }

    /// Marks these responses as delivered.
    pub(crate) fn delivered(&mut self, answers: &[InputResponseEntry]) {
        for response in answers {
            if let Some(input) = self.inputs.get_mut(&response.key) {
                input.state = InputState::Delivered;
            }
        }
    }
}

impl TrackedInput {
    fn close(&mut self) {
        match &self.state {
            InputState::Pending(dispatched) => {
                dispatched.abort();
                self.state = InputState::Withdrawn;
            }
            InputState::Responded(_) | InputState::Ignored => self.state = InputState::Withdrawn,
            InputState::Delivered | InputState::Withdrawn => {}
        }
    }
}

/// How many input requests of a server may wait at the same time.
pub(super) const MAX_OPEN_INPUTS: usize = 256;

/// Whether two input requests are equal, apart from JSON formatting.
fn same(one: &InputRequestEntry, other: &InputRequestEntry) -> bool {
    let params = |input_request: &InputRequestEntry| {
        input_request
            .params
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
