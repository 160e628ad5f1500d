//! Drives one call from its request to its outcome. [`poller`](super::poller) follows the task, if
//! the call becomes one.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Clock, Outcome, SystemClock};
use outlast_wire::envelope::Id;
use outlast_wire::object::Rewrite;
use outlast_wire::v1::TaskRequest;
use outlast_wire::{PeerTask, Raw, meta, tool};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::call::{CallForm, CallSpec, CheckedCall, TaskPreference};
use super::client::Core;
use super::conversation::{CallResponse, Conversation, RequestDraft};
use super::error::Error;
use super::execution::{
    CallCommand, CallController, CancelError, ExecutionStatus, Outage, OutcomeError,
};
use super::modern::{InputDispatcher, InputRounds, OnInvalid, TaskInputs};
use super::open_requests::reply_to_open_requests;
use super::outcome::requires_task;
use super::pending_response::{OnDrop, PendingResponse};
use super::poller::TaskPoller;
use super::reference::{OpenInputRequest, TaskReference};
use super::routes::{CallEvent, CallEventSender, EVENT_CAPACITY};
use super::server_description::Generation;
use super::task_report::TaskReport;
use super::{audit, modern};
use crate::transport::link::TransportError;

/// Drives one call: reports its status to a controller and executes the controller's commands.
pub(crate) struct Driver<'a, O> {
    pub(super) status: ExecutionStatus,
    pub(super) controller: &'a mut O,
    pub(super) events: mpsc::Receiver<CallEvent>,
    event_sender: CallEventSender,
}

/// The senders that wait for the result of a cancellation.
pub(super) type CancelWaiters = Vec<oneshot::Sender<Result<(), CancelError>>>;

/// The result of sending a call.
enum CallStart {
    Task(Generation, TaskReport, Option<String>),
    Ended(Outcome),
    /// The controller abandoned the call before its response.
    Abandoned(OutcomeError),
    Cancelled,
}

/// A request that creates a task. If it is dropped before its response, the task is cancelled as
/// soon as its id is known (A1-25): the response may be on its way, and a request that creates a V1
/// task is never cancelled itself (V1-CANC-2).
struct PendingCreation {
    pending: Option<PendingResponse>,
    conversation: Arc<Conversation>,
    /// Keeps the connection open until a V1 task is created. A V2 server is notified that the
    /// request is withdrawn.
    core: Option<Arc<Core>>,
    timeout: Duration,
}

impl<'a, O: CallController> Driver<'a, O> {
    pub(crate) fn new(status: ExecutionStatus, controller: &'a mut O) -> Self {
        let (event_sender, events) = mpsc::channel(EVENT_CAPACITY);
        Self {
            status,
            controller,
            events,
            event_sender,
        }
    }

    /// Sends a call and drives it to its end.
    pub(crate) async fn call(mut self, call: CheckedCall) -> Result<Outcome, OutcomeError> {
        let CheckedCall { core, spec, form } = call;
        let token = spec.progress_token.clone();
        let token = token.unwrap_or_else(|| core.fresh_token());
        // V1-PROG-3: the token is valid until the end of the task.
        let _progress = core
            .inbound
            .routes
            .route_progress(token.clone(), self.event_sender.clone());
        let mut cancels = CancelWaiters::new();
        match self
            .send_call(&core, &spec, form, &token, &mut cancels)
            .await?
        {
            CallStart::Ended(outcome) => {
                self.drain_events(&core, Some(&token)).await;
                notify_already_ended(cancels);
                Ok(outcome)
            }
            CallStart::Cancelled => Ok(Outcome::Cancelled),
            CallStart::Abandoned(why) => Err(why),
            CallStart::Task(generation, report, immediate_response) => {
                let now = SystemClock.now();
                let task = &report.task;
                let reference = TaskReference::new(&core, generation, &spec, task, &token, now);
                // Stored before it is reported, so that a reported task can be found after a crash.
                let guard = core.store_reference(&reference).await;
                self.status.immediate_response = immediate_response;
                self.status.reference = Some(Arc::new(reference));
                let dispatcher = InputDispatcher::new(&core.inbound, spec.name.clone());
                let inputs = TaskInputs::new(task.id.clone(), dispatcher, OnInvalid::Refuse);
                let poller = TaskPoller::new(core.clone(), report, inputs, Instant::now(), cancels);
                // Boxed because most calls create no task and do not need this space.
                let ended = Box::pin(self.poll_to_end(poller, Vec::new(), spec.name.clone())).await;
                self.drain_events(&core, Some(&token)).await;
                guard.finish(&ended).await;
                ended
            }
        }
    }

    /// Follows a task that a previous run of this program created.
    pub(crate) async fn resume(
        mut self,
        core: Arc<Core>,
        reference: TaskReference,
        open: Vec<OpenInputRequest>,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, OutcomeError> {
        let token = reference.token();
        let routes = core.inbound.routes.clone();
        let _progress = token
            .clone()
            .map(|token| routes.route_progress(token, self.event_sender.clone()));
        let guard = core.store_reference(&reference).await;
        self.status.reference = Some(Arc::new(reference.clone()));
        let age = Duration::from_millis(SystemClock.now().since(reference.created));
        let now = Instant::now();
        let created = now.checked_sub(age).unwrap_or(now);
        let report = TaskReport::brief(reference.as_task());
        let dispatcher = InputDispatcher::new(&core.inbound, name.clone());
        // A2-22: another client may have declared input kinds that this one does not accept.
        let inputs = TaskInputs::new(reference.task.clone(), dispatcher, OnInvalid::Ignore);
        let poller = TaskPoller::new(core.clone(), report, inputs, created, CancelWaiters::new());
        let ended = self.poll_to_end(poller.polling_first(), open, name).await;
        self.drain_events(&core, token.as_ref()).await;
        guard.finish(&ended).await;
        ended
    }

    async fn poll_to_end(
        &mut self,
        mut poller: TaskPoller,
        open: Vec<OpenInputRequest>,
        name: Option<Arc<str>>,
    ) -> Result<Outcome, OutcomeError> {
        let routes = poller.core.inbound.routes.clone();
        // If another execution follows the task, this one only polls it.
        let _status = routes.route_task(&poller.task.id, self.event_sender.clone(), name);
        let _subscription = poller.core.listener.task(&poller.task.id);
        if !open.is_empty() {
            reply_to_open_requests(&poller.core, &poller.task.id, open).await;
        }
        let ended = poller.run(self).await;
        // If a cancellation ended the task, its waiters already have the result.
        notify_already_ended(poller.cancels);
        ended
    }

    /// Sends the call until it has a final response. It is sent again only if the server has
    /// certainly not executed it, if the tool requires a task, or with input responses.
    async fn send_call(
        &mut self,
        core: &Arc<Core>,
        spec: &CallSpec,
        mut form: CallForm,
        token: &Id,
        cancels: &mut CancelWaiters,
    ) -> Result<CallStart, OutcomeError> {
        let tool = Raw::encode(&*spec.tool).map_err(|_| modern::not_an_object("the name"))?;
        let token = token.to_raw();
        let (base, first) = spec.params(&tool, &token)?;
        let task = TaskRequest { ttl_ms: spec.ttl }.to_raw();
        let dispatcher = InputDispatcher::new(&core.inbound, spec.name.clone());
        // The params of a retry with input responses.
        let mut retry_params: Option<Raw> = None;
        let mut rounds = InputRounds::default();
        let mut retries = 0;
        let mut pending = spec.pending.clone();
        loop {
            if let Some(round) = pending.take() {
                rounds.record_round(&round)?;
                if let Some(recorder) = &spec.recorder {
                    recorder.round_started(&round).await;
                }
                let plain = first
                    .apply(base.borrow())
                    .map_err(|_| modern::not_an_object("params"))?;
                let retry = Box::pin(rounds.retry(&dispatcher, plain.borrow(), round));
                retry_params = match self.unless_abandoned(retry).await {
                    Ok(Ok(params)) => Some(params),
                    // A2-19: the call fails with the error of the handler.
                    Ok(Err(refused)) => {
                        return Ok(CallStart::Ended(refused.into_error().into()));
                    }
                    Err(start) => return Ok(start),
                };
                if let Some(recorder) = &spec.recorder {
                    recorder.before_responses().await?;
                }
            }
            let conversation = core.conversation().await?;
            let (params, mut rewrite) = match &retry_params {
                Some(params) => (params, Rewrite::default()),
                None => (&base, first.clone()),
            };
            if form == CallForm::Task && !conversation.server.is_modern() {
                // V1-CREATE-1, S4-94.
                rewrite.set.push(("task", task.borrow()));
            }
            let draft = RequestDraft {
                tasks: form == CallForm::Task,
                rewrite: Some(rewrite),
                headers: core
                    .call_headers(&conversation, spec.arguments.as_ref(), &spec.tool, &base)
                    .await,
                on_drop: match form {
                    CallForm::Plain => OnDrop::Cancel,
                    CallForm::Task => OnDrop::Nothing,
                },
                ..RequestDraft::new(tool::CALL, Some(params.borrow()))
            };
            let id = conversation.channel.fresh_id();
            let routes = &core.inbound.routes;
            let name = spec.name.clone();
            let _named = name.map(|name| routes.name_request(id.clone(), name));
            let response = match conversation.send_with_id(id, &draft).await {
                Ok(pending) => {
                    let mut creation = PendingCreation::new(core, &conversation, pending, form);
                    match self
                        .await_response(core, &mut creation, form, cancels)
                        .await
                    {
                        Ok(response) => response,
                        Err(start) => return Ok(start),
                    }
                }
                Err(error) => Err(error),
            };
            if retries < MAX_RETRIES && core.may_retry(&conversation, &response) {
                retries += 1;
                continue;
            }
            if retries < MAX_RETRIES
                && let Some(pause) = delay_before_retry(&response)
            {
                retries += 1;
                match self.unless_abandoned(tokio::time::sleep(pause)).await {
                    Ok(()) => continue,
                    Err(start) => return Ok(start),
                }
            }
            let takes_tasks =
                matches!(conversation.server.generation, Generation::V1(tasks) if tasks.tools_call);
            let may_be_task = spec.preference != TaskPreference::Forbid && takes_tasks;
            if form == CallForm::Plain && may_be_task && requires_task(&response) {
                form = CallForm::Task;
                continue;
            }
            let response = match response {
                Ok(response) => response,
                Err(error) => match modern::explain_version_error(error) {
                    Error::Peer(error) => return Ok(CallStart::Ended(error.into())),
                    error => return Err(error.into()),
                },
            };
            match conversation.read_call_response(response, form)? {
                CallResponse::Task(report, immediate_response) => {
                    return Ok(CallStart::Task(
                        conversation.server.generation,
                        report,
                        immediate_response,
                    ));
                }
                CallResponse::Result(result) => {
                    return Ok(CallStart::Ended(Outcome::of_tool(result)));
                }
                CallResponse::InputRequired(round) => pending = Some(round),
            }
        }
    }

    /// Waits for work while nothing runs at the server. `Err` if the call is abandoned.
    async fn unless_abandoned<T>(&mut self, work: impl Future<Output = T>) -> Result<T, CallStart> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                command = self.controller.command() => match command {
                    CallCommand::Cancel(sender) => {
                        let _ = sender.send(Ok(()));
                        return Err(CallStart::Cancelled);
                    }
                    CallCommand::Detach => return Err(CallStart::Abandoned(OutcomeError::Detached)),
                    CallCommand::ReportStatus => self.show().await,
                },
                Some(event) = self.events.recv() => self.show_progress(event).await,
            }
        }
    }

    /// Waits for the response to a call; meanwhile executes commands and reports progress. `Err` if
    /// the call is abandoned.
    async fn await_response(
        &mut self,
        core: &Arc<Core>,
        creation: &mut PendingCreation,
        form: CallForm,
        cancels: &mut CancelWaiters,
    ) -> Result<Result<Raw, Error>, CallStart> {
        let options = &core.options;
        // A V1 task is created at once, and its creation is never cancelled (V1-CANC-2).
        let makes_task = form == CallForm::Task && !creation.conversation.server.is_modern();
        let timeout = if makes_task {
            options.request_timeout
        } else {
            options.idle_timeout
        };
        let limit = Instant::now() + options.call_timeout.max(timeout);
        let mut idle_until = Instant::now() + timeout;
        loop {
            tokio::select! {
                biased;
                response = creation.response() => return Ok(response),
                command = self.controller.command() => match command {
                    // A1-25: kept until the id is known.
                    CallCommand::Cancel(sender) if makes_task => {
                        cancels.push(sender);
                        self.status.cancelling = true;
                        self.show().await;
                    }
                    CallCommand::Cancel(sender) => {
                        let _ = sender.send(Ok(()));
                        return Err(CallStart::Cancelled);
                    }
                    CallCommand::Detach => return Err(CallStart::Abandoned(OutcomeError::Detached)),
                    CallCommand::ReportStatus => self.show().await,
                },
                Some(event) = self.events.recv() => {
                    // V1-INIT-9: progress restarts the idle timeout, up to the limit of the call.
                    idle_until = (Instant::now() + timeout).min(limit);
                    self.show_progress(event).await;
                }
                () = tokio::time::sleep_until(idle_until.min(limit)) => {
                    return Err(CallStart::Abandoned(Error::TimedOut(timeout).into()));
                }
            }
        }
    }

    /// Reports progress that arrived before the end and was not reported yet.
    async fn drain_events(&mut self, core: &Core, token: Option<&Id>) {
        while let Ok(event) = self.events.try_recv() {
            self.show_progress(event).await;
        }
        if let Some(missed) = token.and_then(|token| core.inbound.routes.take_missed(token)) {
            self.show_progress(CallEvent::Progress(Box::new(missed)))
                .await;
        }
    }

    pub(super) async fn show_progress(&mut self, event: CallEvent) {
        if let CallEvent::Progress(progress) = event {
            self.status.progress = Some(*progress);
            self.show().await;
        }
    }

    /// Reports the task to the controller if it has changed.
    pub(super) async fn show_task(&mut self, task: &PeerTask) {
        let shown = self.status.task.as_ref();
        if shown.map(|shown| shown.status) != Some(task.status) {
            audit::status_changed(&self.status, task);
        }
        if shown != Some(task) {
            self.status.task = Some(task.clone());
            self.show().await;
        }
    }

    /// Reports the start or the end of an outage to the controller.
    pub(super) async fn show_outage(&mut self, error: Option<&Error>) {
        let before = self.status.outage.as_ref();
        let now = error.and_then(|error| Outage::after(before, error));
        if before != now.as_ref() {
            self.status.outage = now;
            self.show().await;
        }
    }

    /// Reports the status of the call to the controller.
    pub(super) async fn show(&mut self) {
        self.controller.changed(&self.status).await;
    }
}

impl PendingCreation {
    fn new(
        core: &Arc<Core>,
        conversation: &Arc<Conversation>,
        pending: PendingResponse,
        form: CallForm,
    ) -> Self {
        Self {
            pending: Some(pending),
            conversation: conversation.clone(),
            core: (form == CallForm::Task).then(|| core.clone()),
            timeout: core.options.request_timeout,
        }
    }

    async fn response(&mut self) -> Result<Raw, Error> {
        match &mut self.pending {
            Some(pending) => pending.wait().await,
            None => Err(Error::Transport(TransportError::Closed)),
        }
    }
}

impl Drop for PendingCreation {
    fn drop(&mut self) {
        // V1-CANC-1, V2-CANC-1: dropping the pending response of a plain call cancels it.
        let (Some(mut pending), Some(core)) = (self.pending.take(), self.core.take()) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !pending.is_open() {
            return;
        }
        let mut guard = Some(core);
        if self.conversation.server.is_modern() {
            pending.withdraw();
            guard = None;
        }
        let late = cancel_when_created(self.conversation.clone(), pending, self.timeout);
        runtime.spawn(async move {
            late.await;
            drop(guard);
        });
    }
}

/// Cancels an abandoned task as soon as its id is known.
async fn cancel_when_created(
    conversation: Arc<Conversation>,
    pending: PendingResponse,
    timeout: Duration,
) {
    let response = tokio::time::timeout(LATE_RESPONSE_TIMEOUT, pending.response()).await;
    let Ok(Ok(response)) = response else { return };
    let Ok(CallResponse::Task(report, _)) =
        conversation.read_call_response(response, CallForm::Task)
    else {
        return;
    };
    let _ = conversation.cancel(&report.task.id, timeout).await;
}

/// The delay before a call is sent again to a server that refused it without executing it and named
/// a delay; `None` if it is not sent again.
fn delay_before_retry(response: &Result<Raw, Error>) -> Option<Duration> {
    let error = response.as_ref().err()?;
    let pause = error.retry_after().filter(|_| error.server_has_not_acted());
    pause.filter(|pause| *pause <= MAX_RETRY_DELAY)
}

/// Reports that the call ended before it could be cancelled.
fn notify_already_ended(cancels: CancelWaiters) {
    for sender in cancels {
        let _ = sender.send(Err(CancelError::Finished));
    }
}

impl CallSpec {
    /// The params as the caller set them, and the changes that are made when they are sent.
    fn params<'a>(&'a self, tool: &'a Raw, token: &'a Raw) -> Result<(Raw, Rewrite<'a>), Error> {
        let mut rewrite = Rewrite {
            drop: self.omit.members,
            drop_meta: self.omit.meta,
            set: vec![("name", tool.borrow())],
            set_meta: vec![(meta::PROGRESS_TOKEN, token.borrow())],
        };
        if let Some(arguments) = &self.arguments {
            if !arguments.borrow().is_object() {
                return Err(modern::not_an_object("arguments"));
            }
            rewrite.set.push(("arguments", arguments.borrow()));
        }
        if let Some((key, value)) = &self.meta {
            rewrite.set_meta.push((key, value.borrow()));
        }
        let base = self.params.clone().unwrap_or_else(Raw::empty_object);
        Ok((base, rewrite))
    }
}

/// How often a call is sent again if the server has not executed it.
const MAX_RETRIES: u32 = 3;

/// A call fails if the server asks for a longer delay than this.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How long the client waits for the response to an abandoned call.
const LATE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
