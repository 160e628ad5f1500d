//! `tools/call`: one way to run it; the tool, the caller and the time that it takes decide how it is delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{NewCall, Progress, RunningCall};
use outlast_engine::{
    Accepts, Answer, AskKey, Committed, Origin, Outcome, Outstanding, Scope, Task, TaskId, Timing,
};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::headers;
use outlast_wire::log::{self, Log};
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, codes, meta, notice, object, v2};

use super::finish;
use super::{Request, input_responses};
use crate::server::client_handle::capabilities;
use crate::server::delivery::tickets::{self, Helper};
use crate::server::delivery::{self, Delivered, InputDelivery, Source, Terms};
use crate::server::errors::to_wire;
use crate::server::session::progress_params;
use crate::server::{Arrival, Client, Delivery, Incoming, PreparedCall, Reservation};

/// A call as its caller wants it.
pub(super) struct RequestedCall {
    /// The request, as it came this time.
    pub(super) method: String,
    pub(super) params: Raw,
    /// When it becomes a task, if it may.
    pub(super) task: Option<Delivery>,
    /// Under which token its caller wants progress.
    token: Option<Id>,
    /// Input responses that came with the request.
    given: Vec<v2::Answer>,
    /// How long a caller waits that takes no tasks, if it does not wait for ever.
    patience: Option<Duration>,
    /// The text for the model while the task runs.
    immediate: Option<Arc<str>>,
}

/// When a call becomes a task.
#[derive(Default)]
struct Tasking {
    /// For a caller that takes tasks.
    when: Option<Delivery>,
    ttl: Option<u64>,
    /// For one that takes none and waits no longer.
    patience: Option<Duration>,
    /// What the backend holds for the call.
    reservation: Option<Reservation>,
    /// Whether its server starts it before its task is stored.
    prestarts: bool,
}

impl Request {
    pub(super) async fn call_tool(&self, request: Incoming) -> Result<finish::Answer, ErrorObject> {
        let no_name = || codes::invalid_params("`name` must be a string");
        let params = request.params.clone().ok_or_else(no_name)?;
        let name = outlast_wire::tool::called(params.borrow()).ok_or_else(no_name)?;
        outlast_wire::tool::check_arguments(params.borrow())?;
        let client = self.client();
        let holding = self.holding(&client);
        let has_token = self.said.token.is_some();
        let patience = holding.and_then(|holding| holding.terms(has_token).0);
        if let Some(helper) = Helper::named(&name).filter(|_| holding.is_some()) {
            return self.help(helper, params.borrow(), patience).await;
        }
        let prepared = self.front.service.prepare(&client, &name).await?;
        let prepared =
            prepared.ok_or_else(|| codes::invalid_params(format!("unknown tool: {name}")))?;
        self.admit(&prepared, &client, &request)?;
        let task = match prepared.support {
            TaskSupport::Forbidden => None,
            TaskSupport::Optional | TaskSupport::Required => {
                self.said.tasks.then_some(prepared.delivery)
            }
        };
        let runner = prepared.runner.clone();
        let mut origin = Origin::new(outlast_wire::tool::CALL, runner, client.accepts());
        origin.tool = Some((&*name).into());
        origin.retry = prepared.retry;
        let patience = patience.filter(|_| prepared.support != TaskSupport::Forbidden);
        let task = Tasking {
            when: task,
            ttl: prepared.ttl,
            patience,
            reservation: prepared.reservation,
            prestarts: prepared.prestarts,
        };
        self.begin(request, client, origin, task).await
    }

    /// Runs a request like a call: it can ask its caller, and is never a task (V2-CREATE-1).
    pub(super) async fn run_request(
        &self,
        request: Incoming,
        runner: Arc<str>,
    ) -> Result<finish::Answer, ErrorObject> {
        let client = self.client();
        let origin = Origin::new(request.method.as_str(), runner, client.accepts());
        self.begin(request, client, origin, Tasking::default())
            .await
    }

    /// Whether a tool may be called like this.
    fn admit(
        &self,
        prepared: &PreparedCall,
        client: &Client,
        request: &Incoming,
    ) -> Result<(), ErrorObject> {
        if prepared.support == TaskSupport::Required {
            // V2-CAP-9.
            self.need_tasks()?;
        }
        let lacking = prepared.needs.without(client.accepts());
        if lacking != Accepts::NONE {
            // V2-META-5.
            let required = Raw::encode(&capabilities(lacking)).expect("literal objects are JSON");
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

    async fn begin(
        &self,
        request: Incoming,
        client: Arc<Client>,
        mut origin: Origin,
        task: Tasking,
    ) -> Result<finish::Answer, ErrorObject> {
        let params = request.params.unwrap_or_else(Raw::empty_object);
        let retry = v2::Retry::read(params.borrow())?;
        let token = self.said.token.clone();
        origin.params = Some(params.clone());
        origin.progress_token = token.as_ref().map(Id::to_raw);
        let mut wanted = RequestedCall {
            method: request.method,
            params,
            task: task.when,
            token,
            given: retry.answers,
            patience: task.patience,
            immediate: None,
        };
        if let Some(state) = retry.state {
            return self.resume(&state, wanted).await;
        }
        let mut call = NewCall::new(self.visitor.owner().clone(), origin);
        call.ttl = task.ttl;
        call.parts = Some(Arc::new(Arrival {
            client,
            http: request.http,
            reservation: task.reservation.clone(),
        }));
        if let Some(reservation) = task
            .reservation
            .filter(|_| task.prestarts && task.when.is_some())
        {
            wanted.immediate = match self.front.prestart(&reservation, &mut call).await {
                Ok(immediate) => immediate,
                Err(refused) => return delivered(refused),
            };
        }
        let engine = &self.front.engine;
        if task.when == Some(Delivery::Always) {
            let created = engine.create(call).await;
            let created = created.map_err(|error| to_wire(&error))?;
            return Ok(accepted(created.task(), wanted.immediate.as_deref()));
        }
        let running = engine.start(call).map_err(|error| to_wire(&error))?;
        self.follow(running, wanted, 0).await
    }

    /// Follows a call until it can be answered: by its outcome, by a task, or by its input requests. Dropping this
    /// stops the work (V2-HTTP-6), unless it has become a task.
    pub(super) async fn follow(
        &self,
        running: RunningCall,
        wanted: RequestedCall,
        round: u32,
    ) -> Result<finish::Answer, ErrorObject> {
        let terms = wanted.terms();
        let scope = Scope::Of(self.visitor.owner().clone());
        let mut caller = Caller {
            request: self,
            wanted,
        };
        let (engine, source) = (&self.front.engine, Source::call(running));
        let answer = delivery::follow(engine, &scope, source, terms, &mut caller).await;
        let wanted = &caller.wanted;
        match answer {
            Delivered::Outcome(outcome) => delivered(outcome),
            Delivered::Handle(task) => Ok(accepted(&task, wanted.immediate.as_deref())),
            Delivered::Input(running, open) => self.park(*running, &open, wanted, round).await,
            // A retry without state would run the call again, so the ticket comes first: `task_wait` returns the input
            // requests.
            Delivered::TaskInput(task, _) => self.deliver(Delivered::Ticket(task), &scope).await,
            of_a_task => self.deliver(of_a_task, &scope).await,
        }
    }

    /// Waits for a task: its outcome, its input requests, or a ticket when the time is over. A retry carries the input
    /// responses; they name their requests, so no state is needed.
    pub(super) async fn wait_for(
        &self,
        scope: &Scope,
        task: TaskId,
        limit: Option<Duration>,
    ) -> Result<finish::Answer, ErrorObject> {
        let engine = &self.front.engine;
        let source = Source::task(engine, scope, task).await;
        let source = source.map_err(|error| to_wire(&error))?;
        let terms = Terms::waiting((limit, None), InputDelivery::Returned);
        let answer = delivery::follow(engine, scope, source, terms, &mut Silent).await;
        self.deliver(answer, scope).await
    }

    /// The response to a caller that waited for a task.
    async fn deliver(
        &self,
        answer: Delivered,
        scope: &Scope,
    ) -> Result<finish::Answer, ErrorObject> {
        match answer {
            Delivered::Outcome(outcome) => delivered(outcome),
            Delivered::Settled(task, settled) => Ok(tickets::settled(task, settled).into()),
            Delivered::Handle(task) => Ok(accepted(&task, None)),
            Delivered::Ticket(task) => Ok(self.front.ticket(scope, task).await.into()),
            Delivered::Input(_, open) | Delivered::TaskInput(_, open) => {
                let asks: Vec<_> = open.views().collect();
                let asking = v2::input_required_result(&asks, None);
                Ok(asking.map_or(finish::Answer::Nothing, finish::Answer::Own))
            }
            Delivered::Refused(error) => Err(error),
            Delivered::Abandoned => Ok(finish::Answer::Nothing),
        }
    }
}

/// The caller of a modern request.
struct Caller<'a> {
    request: &'a Request,
    wanted: RequestedCall,
}

impl delivery::Caller for Caller<'_> {
    /// V2-PRG-1: only before the response.
    async fn progress(&mut self, progress: &Progress) {
        let params = self.wanted.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            self.request.outlet.notify(notice::PROGRESS, &params).await;
        }
    }

    /// V2-LOG-1: only to a caller that asked for it.
    async fn log(&mut self, log: &Log) {
        let level = self.request.said.level;
        if level.is_some_and(|wanted| log.level >= wanted) {
            let outlet = &self.request.outlet;
            outlet.notify(log::MESSAGE, &log.to_raw()).await;
        }
    }

    fn given(&mut self, open: &Outstanding) -> Result<BTreeMap<AskKey, Answer>, ErrorObject> {
        self.wanted.answers_given(open)
    }
}

/// The caller of a helper tool, which receives nothing before the response.
struct Silent;

impl delivery::Caller for Silent {
    async fn progress(&mut self, _: &Progress) {}

    async fn log(&mut self, _: &Log) {}
}

impl RequestedCall {
    fn terms(&self) -> Terms {
        let input = InputDelivery::Returned;
        match (self.task, self.patience) {
            (Some(task), _) => Terms::handle_after(task.grace(), input),
            // The caller gets a ticket as soon as there is a task.
            (None, Some(patience)) => {
                Terms::waiting((Some(patience), None), input).held_after(patience)
            }
            (None, None) => Terms::inline(input),
        }
    }

    /// Input responses that came before their requests, to those that are made before the work begins (V2-MRTR-10).
    fn answers_given(
        &mut self,
        open: &Outstanding,
    ) -> Result<BTreeMap<AskKey, Answer>, ErrorObject> {
        if self.given.is_empty() {
            return Ok(BTreeMap::new());
        }
        let first: BTreeSet<_> = open
            .iter()
            .filter(|(_, question)| question.timing == Timing::BeforeWork)
            .map(|(key, _)| key.as_str())
            .collect();
        let given = std::mem::take(&mut self.given);
        let (now, later) = given
            .into_iter()
            .partition(|answer| first.contains(answer.key.as_str()));
        self.given = later;
        input_responses::fitting(Some(open), now)
    }

    pub(super) fn take_given(&mut self) -> Vec<v2::Answer> {
        std::mem::take(&mut self.given)
    }
}

/// Only a task that is stored is handed out (V2-CREATE-5).
pub(super) fn accepted(task: &Committed<Task>, immediate: Option<&str>) -> finish::Answer {
    let text = task.id.text();
    let result = v2::create_result(&task.view(&text, task.updated));
    let marked = immediate.and_then(|immediate| {
        let immediate = Raw::encode(immediate).ok()?;
        let key = meta::MODEL_IMMEDIATE_RESPONSE;
        meta::set(result.borrow(), key, immediate.borrow()).ok()
    });
    finish::Answer::Own(marked.unwrap_or(result))
}

/// An outcome as the answer to the request itself.
pub(super) fn delivered(outcome: Outcome) -> Result<finish::Answer, ErrorObject> {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => Ok(finish::Answer::Backend(body)),
        Outcome::Error(error, ..) => Ok(finish::Answer::Error(v2::modern_error(error.borrow()))),
        Outcome::Cancelled => Err(codes::internal("the call was cancelled")),
    }
}
