//! `tools/call` of a modern request: one way to run the call. The tool, the caller and the run time
//! decide about its delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{NewCall, Progress, RunningCall};
use outlast_engine::{
    Committed, InputKey, InputKinds, InputResponse, InputTiming, Origin, Outcome, Outstanding,
    Scope, Task, TaskId,
};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::headers;
use outlast_wire::log::{self, Log};
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, codes, meta, notice, object, v2};

use super::finish;
use super::{ModernRequest, input_responses};
use crate::engine_errors::to_wire;
use crate::input_capabilities::input_capabilities;
use crate::server::delivery::tickets::{self, TicketTool};
use crate::server::delivery::{self, CallSource, DeliveryOutcome, DeliveryPlan, InputDelivery};
use crate::server::session::progress_params;
use crate::server::{
    ClientHandle, IncomingRequest, PreparedCall, RequestParts, Reservation, TaskPolicy,
};

/// A call with the options of its request.
pub(super) struct RequestedCall {
    /// The method of this request.
    pub(super) method: String,
    pub(super) params: Raw,
    /// When it becomes a task, if it may.
    pub(super) task: Option<TaskPolicy>,
    /// The progress token.
    token: Option<Id>,
    /// Input responses that came with the request.
    early_responses: Vec<v2::InputResponseEntry>,
    /// How long a caller without task support waits; `None` for no limit.
    wait_limit: Option<Duration>,
    /// The text for the model while the task runs.
    immediate: Option<Arc<str>>,
}

/// When and how a call becomes a task.
#[derive(Default)]
struct TaskOptions {
    /// For a caller with task support.
    when: Option<TaskPolicy>,
    ttl: Option<u64>,
    /// For a caller without task support: how long it waits.
    wait_limit: Option<Duration>,
    /// What the backend has reserved for the call.
    reservation: Option<Reservation>,
    /// Whether the upstream starts the call before its task is stored.
    prestarts: bool,
}

impl ModernRequest {
    pub(super) async fn call_tool(
        &self,
        request: IncomingRequest,
    ) -> Result<finish::DraftReply, ErrorObject> {
        let no_name = || codes::invalid_params("`name` must be a string");
        let params = request.params.clone().ok_or_else(no_name)?;
        let name = outlast_wire::tool::called(params.borrow()).ok_or_else(no_name)?;
        outlast_wire::tool::check_arguments(params.borrow())?;
        let client = self.client();
        let policy = self.wait_policy(&client);
        let has_token = self.meta.token.is_some();
        let wait_limit = policy.and_then(|policy| policy.limits(has_token).0);
        if let Some(tool) = TicketTool::named(&name).filter(|_| policy.is_some()) {
            return self
                .call_ticket_tool(tool, params.borrow(), wait_limit)
                .await;
        }
        let prepared = self.server.prepare(&client, &name).await?;
        let prepared =
            prepared.ok_or_else(|| codes::invalid_params(format!("unknown tool: {name}")))?;
        self.check_call(&prepared, &client, &request)?;
        let task = match prepared.support {
            TaskSupport::Forbidden => None,
            TaskSupport::Optional | TaskSupport::Required => {
                self.meta.tasks.then_some(prepared.task_policy)
            }
        };
        let runner = prepared.runner.clone();
        let mut origin = Origin::new(outlast_wire::tool::CALL, runner, client.accepts());
        origin.tool = Some((&*name).into());
        origin.retry = prepared.retry;
        let wait_limit = wait_limit.filter(|_| prepared.support != TaskSupport::Forbidden);
        let task = TaskOptions {
            when: task,
            ttl: prepared.ttl,
            wait_limit,
            reservation: prepared.reservation,
            prestarts: prepared.prestarts,
        };
        self.start_call(request, client, origin, task).await
    }

    /// Runs a request like a call: it can send input requests, and never becomes a task
    /// (V2-CREATE-1).
    pub(super) async fn run_request(
        &self,
        request: IncomingRequest,
        runner: Arc<str>,
    ) -> Result<finish::DraftReply, ErrorObject> {
        let client = self.client();
        let origin = Origin::new(request.method.as_str(), runner, client.accepts());
        self.start_call(request, client, origin, TaskOptions::default())
            .await
    }

    /// Checks that the tool may be called by this request.
    fn check_call(
        &self,
        prepared: &PreparedCall,
        client: &ClientHandle,
        request: &IncomingRequest,
    ) -> Result<(), ErrorObject> {
        if prepared.support == TaskSupport::Required {
            // V2-CAP-9.
            self.check_tasks_declared()?;
        }
        let missing = prepared.needs.without(client.accepts());
        if missing != InputKinds::NONE {
            // V2-META-5.
            let required = Raw::from(&input_capabilities(missing));
            let why = "the tool needs a capability that the request does not declare";
            return Err(codes::missing_capability(why, required.borrow()));
        }
        match &request.http {
            // V2-PARAM-5.
            Some(http) if !prepared.headers.is_empty() => {
                let params = request.params.as_ref().map(Raw::borrow);
                let arguments = params.and_then(|params| object::find(params, &["arguments"]));
                headers::check_params(&prepared.headers, arguments, |name| {
                    http.headers.get(name)?.to_str().ok()
                })
            }
            _ => Ok(()),
        }
    }

    async fn start_call(
        &self,
        request: IncomingRequest,
        client: Arc<ClientHandle>,
        mut origin: Origin,
        task: TaskOptions,
    ) -> Result<finish::DraftReply, ErrorObject> {
        let params = request.params.unwrap_or_else(Raw::empty_object);
        let retry = v2::Retry::read(params.borrow())?;
        let token = self.meta.token.clone();
        origin.params = Some(params.clone());
        origin.progress_token = token.as_ref().map(Id::to_raw);
        let mut requested = RequestedCall {
            method: request.method,
            params,
            task: task.when,
            token,
            early_responses: retry.input_responses,
            wait_limit: task.wait_limit,
            immediate: None,
        };
        if let Some(state) = retry.state {
            return self.resume(&state, requested).await;
        }
        let mut call = NewCall::new(self.caller.owner().clone(), origin);
        call.ttl = task.ttl.map(Duration::from_millis);
        call.local_data = Some(Arc::new(RequestParts {
            client,
            http: request.http,
            reservation: task.reservation.clone(),
        }));
        if let Some(reservation) = task
            .reservation
            .filter(|_| task.prestarts && task.when.is_some())
        {
            requested.immediate = match self.server.prestart(&reservation, &mut call).await {
                Ok(immediate) => immediate,
                Err(refused) => return outcome_reply(refused),
            };
        }
        let engine = &self.server.engine;
        if task.when == Some(TaskPolicy::Always) {
            let created = engine.create(call).await;
            let created = created.map_err(|error| to_wire(&error))?;
            return Ok(create_result(
                created.task(),
                requested.immediate.as_deref(),
            ));
        }
        let running = engine.start(call).map_err(|error| to_wire(&error))?;
        self.follow(running, requested, 0).await
    }

    /// Follows a call until there is a response: its outcome, a task, or its input requests.
    /// Dropping the future stops the call (V2-HTTP-6), unless it has become a task.
    pub(super) async fn follow(
        &self,
        running: RunningCall,
        requested: RequestedCall,
        round: u32,
    ) -> Result<finish::DraftReply, ErrorObject> {
        let plan = requested.plan();
        let scope = Scope::OwnedBy(self.caller.owner().clone());
        let mut channel = ModernChannel {
            request: self,
            call: requested,
        };
        let (engine, source) = (&self.server.engine, CallSource::call(running));
        let answer = delivery::follow(engine, &scope, source, plan, &mut channel).await;
        let requested = &channel.call;
        match answer {
            DeliveryOutcome::Outcome(outcome) => outcome_reply(outcome),
            DeliveryOutcome::Handle(task) => {
                Ok(create_result(&task, requested.immediate.as_deref()))
            }
            DeliveryOutcome::Input(running, open) => {
                self.suspend(*running, &open, requested, round).await
            }
            // A retry without state would run the call again, so the caller gets a ticket;
            // `task_wait` returns the input requests.
            DeliveryOutcome::TaskInput(task, _) => {
                self.deliver(DeliveryOutcome::Ticket(task), &scope).await
            }
            of_task => self.deliver(of_task, &scope).await,
        }
    }

    /// Waits for a task: returns its outcome, its input requests, or a ticket after `limit`. A
    /// retry carries the input responses under the keys of the requests, so it needs no state.
    pub(super) async fn wait_for(
        &self,
        scope: &Scope,
        task: TaskId,
        limit: Option<Duration>,
    ) -> Result<finish::DraftReply, ErrorObject> {
        let engine = &self.server.engine;
        let source = CallSource::task(engine, scope, task).await;
        let source = source.map_err(|error| to_wire(&error))?;
        let plan = DeliveryPlan::waiting((limit, None), InputDelivery::Returned);
        let answer = delivery::follow(engine, scope, source, plan, &mut SilentChannel).await;
        self.deliver(answer, scope).await
    }

    /// The response to a caller that waited for a task.
    async fn deliver(
        &self,
        answer: DeliveryOutcome,
        scope: &Scope,
    ) -> Result<finish::DraftReply, ErrorObject> {
        match answer {
            DeliveryOutcome::Outcome(outcome) => outcome_reply(outcome),
            DeliveryOutcome::TaskEnded(task, settled) => {
                Ok(tickets::outcome_reply(task, settled).into())
            }
            DeliveryOutcome::Handle(task) => Ok(create_result(&task, None)),
            DeliveryOutcome::Ticket(task) => Ok(self.server.ticket(scope, task).await.into()),
            DeliveryOutcome::Input(_, open) | DeliveryOutcome::TaskInput(_, open) => {
                let views: Vec<_> = open.views().collect();
                let result = v2::input_required_result(&views, None);
                Ok(result.map_or(finish::DraftReply::Nothing, finish::DraftReply::Local))
            }
            DeliveryOutcome::Refused(error) => Err(error),
            DeliveryOutcome::Abandoned => Ok(finish::DraftReply::Nothing),
        }
    }
}

/// Delivers to the caller of a modern request.
struct ModernChannel<'a> {
    request: &'a ModernRequest,
    call: RequestedCall,
}

impl delivery::DeliveryChannel for ModernChannel<'_> {
    /// V2-PRG-1: only before the response.
    async fn send_progress(&mut self, progress: &Progress) {
        let params = self.call.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            self.request
                .notifications
                .notify(notice::PROGRESS, &params)
                .await;
        }
    }

    /// V2-LOG-1: only to a caller that requested log messages.
    async fn send_log(&mut self, log: &Log) {
        let level = self.request.meta.level;
        if level.is_some_and(|wanted| log.level >= wanted) {
            let notifications = &self.request.notifications;
            notifications.notify(log::MESSAGE, &log.to_raw()).await;
        }
    }

    fn early_responses(
        &mut self,
        open: &Outstanding,
    ) -> Result<BTreeMap<InputKey, InputResponse>, ErrorObject> {
        self.call.matching_early_responses(open)
    }
}

/// Delivers to the caller of a ticket tool, which receives nothing before the response.
struct SilentChannel;

impl delivery::DeliveryChannel for SilentChannel {
    async fn send_progress(&mut self, _: &Progress) {}

    async fn send_log(&mut self, _: &Log) {}
}

impl RequestedCall {
    fn plan(&self) -> DeliveryPlan {
        let input = InputDelivery::Returned;
        match (self.task, self.wait_limit) {
            (Some(task), _) => DeliveryPlan::handle_after(task.grace(), input),
            // The caller gets a ticket as soon as the task exists.
            (None, Some(wait_limit)) => {
                DeliveryPlan::waiting((Some(wait_limit), None), input).promoted_after(wait_limit)
            }
            (None, None) => DeliveryPlan::inline(input),
        }
    }

    /// The early input responses that match open requests from before the work (V2-MRTR-10).
    fn matching_early_responses(
        &mut self,
        open: &Outstanding,
    ) -> Result<BTreeMap<InputKey, InputResponse>, ErrorObject> {
        if self.early_responses.is_empty() {
            return Ok(BTreeMap::new());
        }
        let first: BTreeSet<_> = open
            .iter()
            .filter(|(_, request)| request.timing == InputTiming::BeforeWork)
            .map(|(key, _)| key.as_str())
            .collect();
        let responses = std::mem::take(&mut self.early_responses);
        let (now, later) = responses
            .into_iter()
            .partition(|answer| first.contains(answer.key.as_str()));
        self.early_responses = later;
        input_responses::matching(Some(open), now)
    }

    pub(super) fn take_early_responses(&mut self) -> Vec<v2::InputResponseEntry> {
        std::mem::take(&mut self.early_responses)
    }
}

/// The reply with the handle. Takes a committed task: no handle precedes the commit (V2-CREATE-5).
pub(super) fn create_result(task: &Committed<Task>, immediate: Option<&str>) -> finish::DraftReply {
    let text = task.id.text();
    let result = v2::create_result(&task.view(&text, task.updated));
    let with_immediate = immediate.and_then(|immediate| {
        let immediate = Raw::encode(immediate).ok()?;
        let key = meta::MODEL_IMMEDIATE_RESPONSE;
        meta::set(result.borrow(), key, immediate.borrow()).ok()
    });
    finish::DraftReply::Local(with_immediate.unwrap_or(result))
}

/// The reply with the outcome of a call.
pub(super) fn outcome_reply(outcome: Outcome) -> Result<finish::DraftReply, ErrorObject> {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => {
            Ok(finish::DraftReply::Backend(body))
        }
        Outcome::Error(error, ..) => {
            Ok(finish::DraftReply::Error(v2::modern_error(error.borrow())))
        }
        Outcome::Cancelled => Err(codes::internal("the call was cancelled")),
    }
}
