//! What a running call can do: say where it stands, ask its caller, hear that it should stop.

use std::sync::Arc;

use outlast_wire::log::Log;
use tokio::sync::oneshot;

use super::call_state::{CallStage, CallState};
use super::run::RetryDelay;
use super::{EngineError, Event, Inner, InputError, Phase, Progress};
use crate::id::{Attempt, InputKey, TaskId};
use crate::input::{InputRequest, InputResponse, InputTiming};
use crate::owner::Owner;
use crate::runtime::{can_spawn, run_to_completion, spawn};
use crate::task::ResumeState;
use crate::transition::Command;

/// A running call's way to the world. Cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    inner: Arc<Inner>,
    call_state: Arc<CallState>,
}

/// An answer that is kept until it is confirmed.
pub struct UnconfirmedResponse {
    /// The question.
    pub key: InputKey,
    /// What the caller said.
    pub response: InputResponse,
    cx: CallContext,
}

impl CallContext {
    pub(crate) fn new(inner: Arc<Inner>, call_state: Arc<CallState>) -> Self {
        Self { inner, call_state }
    }

    /// The call's id: that of its task, if it is one or becomes one.
    pub fn id(&self) -> TaskId {
        self.call_state.id
    }

    /// The tool that is called, if it is a tool.
    pub fn tool(&self) -> Option<Arc<str>> {
        self.call_state.origin.tool.clone()
    }

    /// Which start of the call this is.
    pub fn attempt(&self) -> Attempt {
        self.call_state.attempt
    }

    /// What travels with the call, if it is a `T`. Gone after a restart.
    pub fn local_data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.call_state.local_data.clone()?.downcast().ok()
    }

    /// Whose call it is.
    pub fn owner(&self) -> &Owner {
        &self.call_state.owner
    }

    /// Whether somebody may hold a handle to it, or soon will.
    pub fn is_task(&self) -> bool {
        !matches!(self.call_state.lock().stage, CallStage::Plain(..))
    }

    /// Says where the work stands. Returns at once; of texts that follow each other quickly, the
    /// last is stored.
    pub fn status(&self, message: &str) {
        let message = self.cut(message);
        self.queue_update(|fields| {
            fields.last_status = Some(message.clone());
            fields.pending_status = Some(message);
        });
    }

    /// Says as a status text how far the work has come, for a caller that hears of no progress
    /// (BR-PG-2). A text of [`status`](Self::status) stays, followed by the numbers.
    pub fn progress_as_status(&self, progress: &Progress) {
        self.queue_update(|fields| {
            let text = progress.as_status(fields.last_status.as_deref());
            fields.pending_status = Some(self.cut(&text));
        });
    }

    /// Sets the status text that the task has after its end, in place of the one that its outcome
    /// brings.
    pub fn end_message(&self, message: &str) {
        let message = self.cut(message);
        self.call_state.lock().end_message = Some(message);
    }

    fn cut(&self, message: &str) -> Arc<str> {
        self.inner.policy.sizes.cut_status(message).into()
    }

    /// Says how far the work has come. Not stored; a value that does not grow is dropped
    /// (V1-PRG-3).
    pub fn progress(&self, progress: Progress) {
        {
            let mut fields = self.call_state.lock();
            let grows = fields
                .progress
                .as_ref()
                .is_none_or(|last| progress.done > last.done);
            if !grows || matches!(fields.stage, CallStage::Ended) {
                return;
            }
            fields.progress = Some(progress.clone());
        }
        self.inner
            .subscribers
            .publish(self.call_state.id, || Event::Progress(progress.clone()));
    }

    /// Says something to whoever watches. Not stored; a watcher that does not keep up misses some.
    /// A message that is too large is replaced by a word about its size.
    pub fn log(&self, log: Log) {
        if matches!(self.call_state.lock().stage, CallStage::Ended) {
            return;
        }
        let log = self.inner.policy.sizes.admit_log(log);
        self.inner
            .subscribers
            .publish(self.call_state.id, || Event::Log(log.clone()));
    }

    /// Says that the work runs as a task somewhere else, so that the call may as well be one now.
    /// Not stored.
    pub fn runs_as_task(&self) {
        let subscribers = &self.inner.subscribers;
        subscribers.publish(self.call_state.id, || Event::RunsAsTask);
    }

    /// Asks the caller and waits for the answer. Dropping the future takes the question back.
    pub async fn request_input(&self, request: InputRequest) -> Result<InputResponse, InputError> {
        let answered = self
            .request_input_as(self.call_state.fresh_key(), request)
            .await?;
        Ok(answered.confirm_soon())
    }

    /// Asks before any work is done: the caller may as well be told to repeat its call with the
    /// answer.
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

    /// Asks under a key of the runner's own and keeps the answer until the runner confirms that it
    /// has passed it on.
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
        let mut asked = OpenInputRequest {
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
        if let Err(refused) = self.clone().put_to_the_end(key, command).await {
            asked.withdraw_on_drop = refused.is_transient();
            return Err(refused.into());
        }
        asked.answer(received).await
    }

    /// Waits for the answer to a question that an earlier attempt asked and that is still open or
    /// answered but not confirmed.
    pub async fn response_to(&self, key: InputKey) -> Result<UnconfirmedResponse, InputError> {
        let received = self.call_state.expect_response(key.clone());
        let asked = OpenInputRequest {
            cx: self.clone(),
            key: key.clone(),
            withdraw_on_drop: true,
        };
        let (answered, open) = self.call_state.newest().map_or((None, false), |task| {
            let open = task
                .outstanding()
                .is_some_and(|all| all.get(&key).is_some());
            (task.input.responses.get(&key).cloned(), open)
        });
        match answered {
            Some(answer) => Ok(asked.done(answer)),
            None if open => asked.answer(received).await,
            None => {
                asked.drop_quietly();
                Err(InputError::Withdrawn)
            }
        }
    }

    /// Questions that an earlier attempt left open or answered, to go on with after a
    /// re-attachment.
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

    /// Takes a question back.
    pub async fn withdraw_input(&self, key: InputKey) -> Result<(), EngineError> {
        self.call_state.forget_response(&key);
        self.command(Command::WithdrawInput {
            attempt: self.call_state.attempt,
            key,
        })
        .await
    }

    /// Stores what the runner needs to find the work again after a restart.
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

    /// Whether the caller wants the work to stop.
    pub fn is_cancelled(&self) -> bool {
        self.call_state.cancellation.is_requested()
    }

    /// Whether the engine closes and leaves the work to its next life: what goes on elsewhere is
    /// not to be stopped. A call that is no task has no next life.
    pub fn is_interrupted(&self) -> bool {
        self.inner.phase() == Phase::Closed && self.call_state.lock().interrupted
    }

    /// Resolves when the caller wants the work to stop.
    pub async fn cancelled(&self) {
        self.call_state.cancellation.requested().await;
    }

    /// Puts a question. Whoever asked may give it up before it is stored: then it is taken back
    /// here.
    async fn put_to_the_end(self, key: InputKey, command: Command) -> Result<(), EngineError> {
        run_to_completion(async move {
            let put = self.inner.command(&self.call_state, command).await;
            let may_be_open = put.as_ref().err().is_none_or(EngineError::is_transient);
            if may_be_open && !self.call_state.expects(&key) {
                self.take_back(key).await;
            }
            put
        })
        .await
    }

    /// Takes back a question that nobody waits for, however long the store takes.
    async fn take_back(&self, key: InputKey) {
        let mut delay = RetryDelay::default();
        // Answered or ended meanwhile: then there is nothing to take back.
        while let Err(error) = self.withdraw_input(key.clone()).await {
            if !error.is_transient() || self.inner.phase() == Phase::Closed {
                return;
            }
            delay.wait().await;
        }
    }

    async fn command(&self, command: Command) -> Result<(), EngineError> {
        let (inner, call_state) = (self.inner.clone(), self.call_state.clone());
        run_to_completion(async move { inner.command(&call_state, command).await }).await
    }

    /// Notes something that is stored soon, together with whatever else is to be stored.
    fn queue_update(&self, note: impl FnOnce(&mut super::call_state::CallFields)) {
        let queued = {
            let mut fields = self.call_state.lock();
            if matches!(fields.stage, CallStage::Ended) {
                return;
            }
            note(&mut fields);
            std::mem::replace(&mut fields.is_queued, true)
        };
        if !queued {
            self.inner.status_queue.push(self.call_state.id);
        }
    }
}

impl UnconfirmedResponse {
    /// Says that the answer need not be kept, which is stored with whatever is to be stored next.
    pub fn confirm_soon(self) -> InputResponse {
        let Self { key, response, cx } = self;
        cx.queue_update(|fields| fields.pending_confirmations.push(key));
        response
    }

    /// Says that the answer has been passed on and need not be kept.
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

/// A question on its way. Taken back if nobody waits for it any more.
struct OpenInputRequest {
    cx: CallContext,
    key: InputKey,
    withdraw_on_drop: bool,
}

impl OpenInputRequest {
    async fn answer(
        self,
        received: oneshot::Receiver<InputResponse>,
    ) -> Result<UnconfirmedResponse, InputError> {
        match received.await {
            Ok(answer) => Ok(self.done(answer)),
            Err(_) => {
                self.drop_quietly();
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

    fn drop_quietly(mut self) {
        self.withdraw_on_drop = false;
    }
}

impl Drop for OpenInputRequest {
    fn drop(&mut self) {
        self.cx.call_state.forget_response(&self.key);
        let over = matches!(self.cx.call_state.lock().stage, CallStage::Ended);
        if self.withdraw_on_drop && !over && can_spawn() {
            let (cx, key) = (self.cx.clone(), self.key.clone());
            spawn(async move { cx.take_back(key).await });
        }
    }
}
