//! Reports about a detached task, by its handle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{DetachedTask, Progress};
use outlast_engine::task::State;
use outlast_engine::transition::Refused;
use outlast_engine::{
    Committed, Ending, Engine, EngineError, InputKey, InputKind, InputRequest, InputResponse,
    Outcome, Store, Task, TaskId,
};
use outlast_wire::{Raw, object};
use serde::Serialize;

use super::CompletionHandle;

/// A detached task whose handle was checked.
///
/// [`RunningServer::completion`](crate::RunningServer::completion) returns it in the process of the
/// server, [`complete`](crate::complete) in a process that shares the store with it.
///
/// ```
/// use outlast::detached::{Completion, CompletionError};
/// use outlast::task::Outcome;
/// use outlast::wire::Raw;
///
/// async fn report(task: Completion) -> Result<(), CompletionError> {
///     task.status("printing").await?;
///     let result = outlast::text("printed").to_string();
///     let result = Raw::parse(result).expect("a result is JSON");
///     task.end(Outcome::Result(result)).await
/// }
/// ```
pub struct Completion {
    task: DetachedTask,
}

/// The state of a detached task.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetachedState {
    /// Its id.
    pub task_id: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// Whether the caller wants the work to stop.
    pub cancel_requested: bool,
    /// The input responses that were not confirmed, by the key of their request.
    pub responses: BTreeMap<String, InputResponse>,
}

/// Why a report about a detached task was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// No task has this handle: the secret is wrong, or the task has expired.
    #[error("no detached task has this handle; it is wrong, or the task has expired")]
    UnknownHandle,
    /// The task has ended; only the first end is stored.
    #[error("the task has already ended as {0}")]
    Ended(&'static str),
    /// The report cannot be applied; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be used now. Send the report again.
    #[error("{0}; send the report again")]
    Unavailable(EngineError),
}

impl Completion {
    /// The task of `handle`, if its secret is right.
    pub(crate) async fn open(
        engine: &Engine,
        handle: &CompletionHandle,
    ) -> Result<Self, CompletionError> {
        Self::checked(engine.detached(handle.task(), handle.attempt()), handle).await
    }

    /// The task of `handle` in a store without a server, if its secret is right.
    pub(crate) async fn in_store(
        store: &Arc<dyn Store>,
        handle: &CompletionHandle,
    ) -> Result<Self, CompletionError> {
        let task = DetachedTask::in_store(store.clone(), handle.task(), handle.attempt());
        Self::checked(task, handle).await
    }

    /// Checks the secret of `handle`. Its hash is removed when the task ends; from then on every
    /// caller that knows the id learns that it has ended.
    async fn checked(
        task: DetachedTask,
        handle: &CompletionHandle,
    ) -> Result<Self, CompletionError> {
        let found = task.load().await.map_err(not_found)?;
        if let State::Ended(ending) = found.state {
            return Err(CompletionError::Ended(ended_word(ending)));
        }
        if !handle.matches(found.resume_state.as_ref()) {
            return Err(CompletionError::UnknownHandle);
        }
        Ok(Self { task })
    }

    /// The id of the task.
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Sets the status text.
    pub async fn status(&self, text: &str) -> Result<(), CompletionError> {
        self.task.status(text).await.map_err(refused)
    }

    /// Reports progress to the clients of this process. The message becomes the status text.
    pub async fn progress(&self, progress: Progress) -> Result<(), CompletionError> {
        if let Some(text) = &progress.message {
            self.status(text).await?;
        }
        self.task.progress(&progress);
        Ok(())
    }

    /// Reports that the work is alive. It fails after `limit`, unless another heartbeat follows.
    pub async fn heartbeat(&self, limit: Duration) -> Result<(), CompletionError> {
        self.task.heartbeat(limit).await.map_err(refused)
    }

    /// Asks the caller of the tool, under a key that the work uses once.
    /// [`Completion::state`] has the response.
    pub async fn request_input(
        &self,
        key: &str,
        request: InputRequest,
    ) -> Result<(), CompletionError> {
        let task = self.load().await?;
        let with_tools = InputKind::Sample == request.kind && asks_for_tools(&request);
        let kind = if with_tools {
            InputKind::SampleWithTools
        } else {
            request.kind
        };
        if !task.origin.accepts.contains(kind) {
            let why = format!("the caller does not support {}", kind.word());
            return Err(CompletionError::Invalid(why));
        }
        let request = InputRequest { kind, ..request };
        let requested = self.task.request_input(InputKey::new(key), request).await;
        requested.map_err(refused)
    }

    /// Drops an input response that was used.
    pub async fn confirm_input(&self, key: &str) -> Result<(), CompletionError> {
        let confirmed = self.task.confirm_input(InputKey::new(key)).await;
        confirmed.map_err(refused)
    }

    /// Ends the task. Only the first end succeeds.
    pub async fn end(&self, outcome: Outcome) -> Result<(), CompletionError> {
        self.task.end(outcome).await.map(drop).map_err(refused)
    }

    /// The state of the task.
    pub async fn state(&self) -> Result<DetachedState, CompletionError> {
        let task = self.load().await?;
        let responses = task.input.responses.iter();
        Ok(DetachedState {
            task_id: task.id.to_string(),
            status: status_word(&task.state),
            cancel_requested: task.cancel.is_some(),
            responses: responses
                .map(|(key, response)| (key.as_str().to_owned(), response.clone()))
                .collect(),
        })
    }

    async fn load(&self) -> Result<Committed<Task>, CompletionError> {
        self.task.load().await.map_err(not_found)
    }
}

fn asks_for_tools(request: &InputRequest) -> bool {
    let params = request.params.as_ref().map(Raw::borrow);
    params.is_some_and(|params| object::find(params, &["tools"]).is_some())
}

fn status_word(state: &State) -> &'static str {
    match state {
        State::Working => "working",
        State::AwaitingInput(_) => "input_required",
        State::Ended(ending) => ended_word(*ending),
    }
}

fn ended_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Result => "completed",
        Ending::ToolError | Ending::Error(_) => "failed",
        Ending::Cancelled => "cancelled",
    }
}

fn not_found(error: EngineError) -> CompletionError {
    match error {
        EngineError::NotFound | EngineError::Expired => CompletionError::UnknownHandle,
        error => CompletionError::Unavailable(error),
    }
}

fn refused(error: EngineError) -> CompletionError {
    match error {
        EngineError::Refused(Refused::AlreadyEnded(ending)) => {
            CompletionError::Ended(ended_word(ending))
        }
        EngineError::Refused(Refused::Expired) => CompletionError::UnknownHandle,
        EngineError::Refused(_) | EngineError::TooLarge { .. } => {
            CompletionError::Invalid(error.to_string())
        }
        error => not_found(error),
    }
}
