//! `tools/call`: one way to run it, and the delivery that the tool, the caller and the clock decide.
//!
//! A call begins as a plain one unless its tool is always a task. It is answered inline if it ends within the grace
//! window of its tool. Otherwise it becomes a task in the middle of its life: stored, then answered. Where the caller
//! or the tool does not take tasks, or the store refuses, the answer waits for the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{Event, NewCall, Progress, Promotion, RunningCall};
use outlast_engine::{Accepts, AskKey, Committed, Origin, Outcome, Retry, Scope, Task, Timing};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::headers;
use outlast_wire::log::{self, Log};
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, codes, meta, notice, object, v2};
use tokio::time::Instant;

use super::lists::{CACHEABLE, finished};
use super::{Request, answers};
use crate::front::client::capabilities;
use crate::front::errors::to_wire;
use crate::front::follow::progress_params;
use crate::front::tickets::Helper;
use crate::front::{Arrival, Client, Delivery, Incoming, PreparedCall, Reply, Reservation};

/// A call as it is to be delivered.
pub(super) struct Terms {
    /// The request, as it came this time.
    pub(super) method: String,
    pub(super) params: Raw,
    /// When it becomes a task, if it may.
    pub(super) task: Option<Delivery>,
    /// Under which token its caller wants progress.
    token: Option<Id>,
    /// Answers that came without a question.
    given: Vec<v2::Answer>,
    /// How long a caller waits that takes no tasks, if it waits no longer.
    patience: Option<Duration>,
    /// What the model should hear while the task runs.
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
    pub(super) async fn call_tool(&self, request: Incoming) -> Result<Reply, ErrorObject> {
        let no_name = || codes::invalid_params("`name` must be a string");
        let params = request.params.clone().ok_or_else(no_name)?;
        let name = outlast_wire::tool::called(params.borrow()).ok_or_else(no_name)?;
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
        let origin = Origin {
            method: outlast_wire::tool::CALL.into(),
            tool: Some((&*name).into()),
            params: None,
            runner: prepared.runner.clone(),
            progress_token: None,
            retry: prepared.retry,
            accepts: client.accepts(),
        };
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
    ) -> Result<Reply, ErrorObject> {
        let client = self.client();
        let origin = Origin {
            method: request.method.as_str().into(),
            tool: None,
            params: None,
            runner,
            progress_token: None,
            retry: Retry::Never,
            accepts: client.accepts(),
        };
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
    ) -> Result<Reply, ErrorObject> {
        let params = request.params.unwrap_or_else(Raw::empty_object);
        let retry = v2::Retry::read(params.borrow())?;
        let token = self.said.token.clone();
        origin.params = Some(params.clone());
        origin.progress_token = token.as_ref().map(Id::to_raw);
        let mut terms = Terms {
            method: request.method,
            params,
            task: task.when,
            token,
            given: retry.answers,
            patience: task.patience,
            immediate: None,
        };
        if let Some(state) = retry.state {
            return self.resume(&state, terms).await;
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
            terms.immediate = match self.front.prestart(&reservation, &mut call).await {
                Ok(immediate) => immediate,
                Err(refused) => return delivered(refused, &terms.method),
            };
        }
        let engine = &self.front.engine;
        if task.when == Some(Delivery::Always) {
            let created = engine.create(call).await;
            let created = created.map_err(|error| to_wire(&error))?;
            return Ok(accepted(created.task(), terms.immediate.as_deref()));
        }
        let running = engine.start(call).map_err(|error| to_wire(&error))?;
        self.follow(running, terms, 0).await
    }

    /// Stays with a call until it can be answered: by its outcome, by a task, or by its questions. Dropping this
    /// stops the work (V2-HTTP-6), unless it has become a task.
    pub(super) async fn follow(
        &self,
        mut running: RunningCall,
        mut terms: Terms,
        round: u32,
    ) -> Result<Reply, ErrorObject> {
        let mut promotion = terms.promotion();
        // Questions that are put together are delivered together.
        let mut ask = None;
        loop {
            let moment = ask.or(promotion).unwrap_or_else(far_away);
            tokio::select! {
                biased;
                event = running.event() => match event {
                    Some(Event::Progress(progress)) => self.tell_progress(&terms, &progress).await,
                    Some(Event::Log(log)) => self.tell_log(&log).await,
                    Some(Event::Plain(state)) => {
                        let answered = terms.answers_given(&state)?;
                        if !answered.is_empty() {
                            // A question that is not open any more takes no answer.
                            let _ = running.answer(answered).await;
                        }
                        let asks = running.state().is_some_and(|state| state.outstanding().is_some());
                        ask = asks.then(|| ask.unwrap_or_else(|| Instant::now() + TOGETHER));
                    }
                    Some(Event::Stored(_)) => {}
                    None => return delivered(running.outcome().await, &terms.method),
                },
                () = tokio::time::sleep_until(moment) => {
                    let open = running.state().and_then(|state| state.outstanding().cloned());
                    let first = open.as_ref().is_some_and(|open| {
                        open.iter().all(|(_, question)| question.timing == Timing::BeforeWork)
                    });
                    match open {
                        // What is asked before the work begins, or cannot be asked by a task.
                        Some(open) if first || terms.task.is_none() => {
                            return self.park(running, &open, &terms, round).await;
                        }
                        Some(_) => {}
                        None if ask.take().is_some() => continue,
                        None => {}
                    }
                    match running.promote().await {
                        Ok(Promotion::Stored(task)) if terms.task.is_none() => {
                            let scope = Scope::Of(task.owner.clone());
                            return match self.front.ticket(&scope, task.id).await {
                                Reply::Result(ticket) => finished(ticket.borrow(), false),
                                other => Ok(other),
                            };
                        }
                        Ok(Promotion::Stored(task)) => {
                            return Ok(accepted(&task, terms.immediate.as_deref()));
                        }
                        Ok(Promotion::Finished(outcome)) => return delivered(outcome, &terms.method),
                        Err((still, error)) => {
                            // The call goes on and is answered inline.
                            tracing::warn!(call = %still.id(), %error, "a call did not become a task");
                            running = *still;
                            (terms.task, terms.patience, promotion) = (None, None, None);
                        }
                    }
                }
            }
        }
    }

    /// V2-PRG-1: only before the answer.
    async fn tell_progress(&self, terms: &Terms, progress: &Progress) {
        let params = terms.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            self.outlet.notify(notice::PROGRESS, &params).await;
        }
    }

    /// V2-LOG-1: only to a caller that asked for it.
    async fn tell_log(&self, log: &Log) {
        if self.said.level.is_some_and(|wanted| log.level >= wanted) {
            self.outlet.notify(log::MESSAGE, &log.to_raw()).await;
        }
    }
}

impl Terms {
    /// When the call becomes a task, counted from now.
    fn promotion(&self) -> Option<Instant> {
        let grace = match self.task {
            Some(Delivery::Within(grace)) => grace,
            Some(Delivery::Always) => Duration::ZERO,
            Some(Delivery::OnceAnswered) => Delivery::GRACE,
            // Its caller gets a ticket then.
            None => self.patience?,
        };
        Some(Instant::now() + grace)
    }

    /// Answers to questions that are asked before the work begins and were answered before they were asked
    /// (V2-MRTR-10).
    fn answers_given(
        &mut self,
        state: &Task,
    ) -> Result<std::collections::BTreeMap<AskKey, outlast_engine::Answer>, ErrorObject> {
        if self.given.is_empty() {
            return Ok(Default::default());
        }
        let open = state.outstanding();
        let first: BTreeSet<_> = open
            .into_iter()
            .flat_map(|open| open.iter())
            .filter(|(_, question)| question.timing == Timing::BeforeWork)
            .map(|(key, _)| key.as_str())
            .collect();
        let given = std::mem::take(&mut self.given);
        let (now, later) = given
            .into_iter()
            .partition(|answer| first.contains(answer.key.as_str()));
        self.given = later;
        answers::fitting(open, now)
    }

    pub(super) fn take_given(&mut self) -> Vec<v2::Answer> {
        std::mem::take(&mut self.given)
    }
}

/// Only a task that is stored is handed out (V2-CREATE-5).
pub(super) fn accepted(task: &Committed<Task>, immediate: Option<&str>) -> Reply {
    let text = task.id.text();
    let result = v2::create_result(&task.view(&text));
    let marked = immediate.and_then(|immediate| {
        let immediate = Raw::encode(immediate).ok()?;
        let key = meta::MODEL_IMMEDIATE_RESPONSE;
        meta::set(result.borrow(), key, immediate.borrow()).ok()
    });
    Reply::Result(marked.unwrap_or(result))
}

/// An outcome as the answer to the request itself.
pub(super) fn delivered(outcome: Outcome, method: &str) -> Result<Reply, ErrorObject> {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => {
            finished(body.borrow(), CACHEABLE.contains(&method))
        }
        Outcome::Error(error, ..) => Ok(Reply::Error(v2::modern_error(error.borrow()))),
        Outcome::Cancelled => Err(codes::internal("the call was cancelled")),
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

/// How long after a question others are waited for.
const TOGETHER: Duration = Duration::from_millis(5);
