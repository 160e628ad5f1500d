//! The interface of the engine for a running call: status, input requests, cancellation.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::log::Log;
use tokio::sync::oneshot;

use super::call_state::CallState;
use super::detached::{DetachedTask, millis};
use super::run::RetryDelay;
use super::{EngineError, EnginePhase, Event, Inner, InputError, Progress};
use crate::id::{Attempt, InputKey, TaskId};
use crate::input::{InputRequest, InputResponse, InputTiming};
use crate::owner::Owner;
use crate::runtime::{can_spawn, run_to_completion, spawn};
use crate::task::ResumeState;
use crate::transition::Command;

/// The handle of a running call. Cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    inner: Arc<Inner>,
    call_state: Arc<CallState>,
}

/// An input response that is stored until it is confirmed.
pub struct UnconfirmedResponse {
    /// The key of the input request.
    pub key: InputKey,
    /// The response of the caller.
    pub response: InputResponse,
    cx: CallContext,
}

impl CallContext {
    pub(crate) fn new(inner: Arc<Inner>, call_state: Arc<CallState>) -> Self {
        Self { inner, call_state }
    }

    /// The id of the call, which is also the id of its task if it is or becomes one.
    pub fn id(&self) -> TaskId {
        self.call_state.id
    }

    /// The name of the tool, if a tool is called.
    pub fn tool(&self) -> Option<Arc<str>> {
        self.call_state.origin.tool.clone()
    }

    /// The number of this attempt.
    pub fn attempt(&self) -> Attempt {
        self.call_state.attempt
    }

    /// The local data of the call, if it is a `T`. It is not available after a restart.
    pub fn local_data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.call_state.local_data.clone()?.downcast().ok()
    }

    /// The owner of the call.
    pub fn owner(&self) -> &Owner {
        &self.call_state.owner
    }

    /// Whether a client may have a handle to the call, or is about to get one.
    pub fn is_task(&self) -> bool {
        !self.call_state.is_plain()
    }

    /// Sets the status text. Returns immediately. If texts follow each other quickly, only the last
    /// is stored.
    pub fn status(&self, message: &str) {
        let is_new = self.call_state.set_status(self.cut(message));
        self.queue_if(is_new);
    }

    /// Reports progress as a status text, for a caller that receives no progress notifications
    /// (BR-PG-2). A text of [`status`](Self::status) stays, followed by the numbers.
    pub fn progress_as_status(&self, progress: &Progress) {
        let text = |last: Option<&str>| self.cut(&progress.as_status(last));
        let is_new = self.call_state.extend_status(text);
        self.queue_if(is_new);
    }

    /// Sets the status text of the task after its end, in place of the one of its outcome.
    pub fn end_message(&self, message: &str) {
        self.call_state.set_end_message(self.cut(message));
    }

    fn cut(&self, message: &str) -> Arc<str> {
        self.inner.policy.sizes.cut_status(message).into()
    }

    /// Reports progress. It is not stored, and a value that does not grow is dropped (V1-PRG-3).
    pub fn progress(&self, progress: Progress) {
        if !self.call_state.advance(&progress) {
            return;
        }
        self.inner.changes.progress(self.call_state.id, &progress);
        // A call that is not a task has no watchers elsewhere.
        let is_task = self.call_state.was_stored();
        self.inner
            .publish_progress(self.call_state.id, progress, is_task);
    }

    /// Sends a log message to the watchers. It is not stored, and a slow watcher misses some
    /// messages. A message that is too large is replaced by a notice with its size.
    pub fn log(&self, log: Log) {
        if self.call_state.has_ended() {
            return;
        }
        let log = self.inner.policy.sizes.admit_log(log);
        self.inner
            .subscribers
            .publish(self.call_state.id, || Event::Log(log.clone()));
    }

    /// Reports that the work runs as a task elsewhere, so that the call can become a task now. Not
    /// stored.
    pub fn runs_as_task(&self) {
        let subscribers = &self.inner.subscribers;
        subscribers.publish(self.call_state.id, || Event::RunsAsTask);
    }

    /// Sends an input request to the caller and waits for the response. Dropping the future
    /// withdraws the request.
    pub async fn request_input(&self, request: InputRequest) -> Result<InputResponse, InputError> {
        let unconfirmed = self
            .request_input_as(self.call_state.fresh_key(), request)
            .await?;
        Ok(unconfirmed.confirm_soon())
    }

    /// Sends an input request before any work is done. A caller can be asked to repeat its call
    /// with the response.
    pub async fn request_input_first(
        &self,
        request: InputRequest,
    ) -> Result<InputResponse, InputError> {
        self.request_input(InputRequest {
            timing: InputTiming::BeforeWork,
            ..request
        })
        .await
    }

    /// Sends an input request with a key that the runner chooses. The response is stored until the
    /// runner confirms it.
    pub async fn request_input_as(
        &self,
        key: InputKey,
        request: InputRequest,
    ) -> Result<UnconfirmedResponse, InputError> {
        if !self.call_state.origin.accepts.contains(request.kind) {
            return Err(InputError::Unsupported(request.kind.word()));
        }
        let sizes = &self.inner.policy.sizes;
        sizes.check(
            "the key of the input request",
            key.as_str().len(),
            sizes.name_bytes,
            "name_bytes",
        )?;
        sizes.check(
            "the input request",
            request.size(),
            sizes.payload_bytes,
            "payload_bytes",
        )?;
        let limit = sizes.input_requests;
        let received = self.call_state.expect_response(key.clone());
        let mut open_request = OpenInputRequest {
            cx: self.clone(),
            key: key.clone(),
            withdraw_on_drop: true,
        };
        let attempt = self.call_state.attempt;
        let command = Command::RequestInput {
            attempt,
            key: key.clone(),
            request,
            limit,
        };
        if let Err(refused) = self.clone().store_input_request(key, command).await {
            open_request.withdraw_on_drop = refused.is_transient();
            return Err(refused.into());
        }
        open_request.response(received).await
    }

    /// Waits for the response to an input request of an earlier attempt that is open, or answered
    /// and not confirmed.
    pub async fn response_to(&self, key: InputKey) -> Result<UnconfirmedResponse, InputError> {
        let received = self.call_state.expect_response(key.clone());
        let open_request = OpenInputRequest {
            cx: self.clone(),
            key: key.clone(),
            withdraw_on_drop: true,
        };
        let (response, is_open) = self.call_state.newest().map_or((None, false), |task| {
            let open = task
                .outstanding()
                .is_some_and(|all| all.get(&key).is_some());
            (task.input.responses.get(&key).cloned(), open)
        });
        match response {
            Some(response) => Ok(open_request.done(response)),
            None if is_open => open_request.response(received).await,
            None => {
                open_request.disarm();
                Err(InputError::Withdrawn)
            }
        }
    }

    /// The input requests of an earlier attempt that are open or unconfirmed, for a runner that
    /// re-attaches.
    pub fn pending_input(&self) -> Vec<InputKey> {
        let Some(task) = self.call_state.newest() else {
            return Vec::new();
        };
        let open = task
            .outstanding()
            .into_iter()
            .flat_map(|all| all.iter().map(|(key, _)| key));
        open.chain(task.input.responses.keys()).cloned().collect()
    }

    /// Withdraws an input request.
    pub async fn withdraw_input(&self, key: InputKey) -> Result<(), EngineError> {
        self.call_state.forget_response(&key);
        self.command(Command::WithdrawInput {
            attempt: self.call_state.attempt,
            key,
        })
        .await
    }

    /// Stores the data that the runner needs to re-attach to the work after a restart.
    pub async fn save_resume_state(&self, state: ResumeState) -> Result<(), EngineError> {
        let sizes = &self.inner.policy.sizes;
        sizes.check(
            "the resume state",
            state.0.len(),
            sizes.resume_state_bytes,
            "resume_state_bytes",
        )?;
        self.command(Command::SaveResumeState {
            attempt: self.call_state.attempt,
            state,
        })
        .await
    }

    /// Gives the work away: the task has no executor from now on, and what this call returns is
    /// dropped. The returned task ends after `limit`, unless a heartbeat moves the end. Only a task
    /// can be detached.
    pub async fn detach(
        &self,
        state: ResumeState,
        limit: Option<Duration>,
    ) -> Result<DetachedTask, EngineError> {
        if !self.is_task() {
            return Err(EngineError::NotATask);
        }
        let sizes = &self.inner.policy.sizes;
        sizes.check(
            "the resume state",
            state.0.len(),
            sizes.resume_state_bytes,
            "resume_state_bytes",
        )?;
        let attempt = self.call_state.attempt;
        self.command(Command::Detach {
            attempt,
            state,
            limit_ms: limit.map(millis),
        })
        .await?;
        Ok(DetachedTask::new(
            self.inner.clone(),
            self.id(),
            attempt.next(),
        ))
    }

    /// Whether the caller requested a cancellation.
    pub fn is_cancelled(&self) -> bool {
        self.call_state.cancellation.is_requested()
    }

    /// Whether the engine shuts down and leaves the work to its next start. Work that continues
    /// elsewhere must not be stopped. Never true for a call that is not a task.
    pub fn is_interrupted(&self) -> bool {
        self.inner.phase() == EnginePhase::Closed && self.call_state.is_interrupted()
    }

    /// Resolves when the caller requests a cancellation.
    pub async fn cancelled(&self) {
        self.call_state.cancellation.requested().await;
    }

    /// Stores an input request. If its requester gives up before it is stored, it is withdrawn
    /// here.
    async fn store_input_request(self, key: InputKey, command: Command) -> Result<(), EngineError> {
        run_to_completion(async move {
            let put = self.inner.command(&self.call_state, command).await;
            let may_be_open = put.as_ref().err().is_none_or(EngineError::is_transient);
            if may_be_open && !self.call_state.expects(&key) {
                self.withdraw_with_retries(key).await;
            }
            put
        })
        .await
    }

    /// Withdraws an input request that has no receiver, and retries while the store fails.
    async fn withdraw_with_retries(&self, key: InputKey) {
        let mut delay = RetryDelay::default();
        // The request was answered or the task ended in the meantime: nothing to withdraw.
        while let Err(error) = self.withdraw_input(key.clone()).await {
            if !error.is_transient() || self.inner.phase() == EnginePhase::Closed {
                return;
            }
            delay.wait(&*self.inner.ids).await;
        }
    }

    async fn command(&self, command: Command) -> Result<(), EngineError> {
        let (inner, call_state) = (self.inner.clone(), self.call_state.clone());
        run_to_completion(async move { inner.command(&call_state, command).await }).await
    }

    /// Queues the call in the status writer if its updates are new. The writer stores them soon,
    /// together with others.
    fn queue_if(&self, has_new_updates: bool) {
        if has_new_updates {
            self.inner.status_queue.push(self.call_state.id);
        }
    }
}

impl UnconfirmedResponse {
    /// Confirms the response without waiting. The confirmation is stored with the next update.
    pub fn confirm_soon(self) -> InputResponse {
        let Self { key, response, cx } = self;
        let is_new = cx.call_state.confirm_soon(key);
        cx.queue_if(is_new);
        response
    }

    /// Confirms that the response was used and need not be stored any longer.
    pub async fn confirm(self) -> Result<(), EngineError> {
        let attempt = self.cx.call_state.attempt;
        self.cx
            .command(Command::ConfirmInput {
                attempt,
                key: self.key,
            })
            .await
    }
}

/// An input request without a response. It is withdrawn if it is dropped.
struct OpenInputRequest {
    cx: CallContext,
    key: InputKey,
    withdraw_on_drop: bool,
}

impl OpenInputRequest {
    async fn response(
        self,
        received: oneshot::Receiver<InputResponse>,
    ) -> Result<UnconfirmedResponse, InputError> {
        match received.await {
            Ok(response) => Ok(self.done(response)),
            Err(_) => {
                self.disarm();
                Err(InputError::Withdrawn)
            }
        }
    }

    fn done(mut self, response: InputResponse) -> UnconfirmedResponse {
        self.withdraw_on_drop = false;
        UnconfirmedResponse {
            key: self.key.clone(),
            response,
            cx: self.cx.clone(),
        }
    }

    fn disarm(mut self) {
        self.withdraw_on_drop = false;
    }
}

impl Drop for OpenInputRequest {
    fn drop(&mut self) {
        self.cx.call_state.forget_response(&self.key);
        let over = self.cx.call_state.has_ended();
        if self.withdraw_on_drop && !over && can_spawn() {
            let (cx, key) = (self.cx.clone(), self.key.clone());
            spawn(async move { cx.withdraw_with_retries(key).await });
        }
    }
}
