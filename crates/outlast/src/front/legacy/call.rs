//! `tools/call`: one way to run it, two ways to deliver it (S2-11, S2-38).

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{Event, NewCall, RunningCall};
use outlast_engine::{Committed, Origin, Outcome, Retry, Task};
use outlast_wire::envelope::{Id, write};
use outlast_wire::v1::{TaskSupport, ToolCall};
use outlast_wire::{Raw, codes, meta, v1};
use tokio::time::Instant;

use super::hold::Hold;
use crate::front::errors::to_wire;
use crate::front::follow::question_id;
use crate::front::tickets::Helper;
use crate::front::{Arrival, Client, Incoming, Reply, ResponseStream, Session, Stopped};
use crate::sleep::sleep_until;

impl Session {
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: Incoming,
        tasks: bool,
        stream: &ResponseStream,
        stopped: &Stopped,
    ) -> Reply {
        let Some(params) = &request.params else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        let Some(said) = ToolCall::read(params.borrow()) else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        let name = &*said.name;
        let holding = self.holding(client);
        if let Some(holding) = holding.filter(|holding| holding.tickets)
            && let Some(helper) = Helper::named(name)
        {
            let answers = (stream, said.progress_token());
            return self.help(helper, params.borrow(), holding, answers).await;
        }
        let prepared = match self.front.service.prepare(client, name).await {
            Ok(Some(prepared)) => prepared,
            Ok(None) => {
                return Reply::from(codes::invalid_params(format!("unknown tool: {name}")));
            }
            Err(error) => return Reply::from(error),
        };
        // V1-CAP-11: without the capability, `task` is not even looked at.
        let wish = match tasks.then(|| said.wish()).transpose() {
            Ok(wish) => wish.flatten(),
            Err(error) => return Reply::from(error),
        };
        match (wish, prepared.support) {
            (Some(_), TaskSupport::Forbidden) => {
                // V1-TOOL-3: before anything runs.
                let why = format!("tool {name} does not run as a task; call it without `task`");
                return Reply::from(refused(why));
            }
            (None, TaskSupport::Required) if tasks => {
                // V1-TOOL-6.
                let why = format!("tool {name} runs only as a task; call it with `task`");
                return Reply::from(refused(why));
            }
            _ => {}
        }
        let (tool, token) = (Some(Arc::from(name)), said.progress_token());
        let arrival = Arrival {
            client: client.clone(),
            http: request.http.clone(),
            reservation: prepared.reservation.clone(),
        };
        let mut call = self.new_call(arrival, request, prepared.runner, token.as_ref());
        call.origin.tool = tool;
        call.origin.retry = prepared.retry;
        match wish {
            Some(wish) => {
                self.has_used_tasks();
                call.ttl = wish.ttl_ms.or(prepared.ttl);
                let Some(reservation) = prepared.reservation.filter(|_| prepared.prestarts) else {
                    return self.create(call, prepared.immediate.as_deref()).await;
                };
                let session = self.clone();
                // BR-CREATE-10: who goes away meanwhile finds the task all the same.
                let creating = tokio::spawn(async move {
                    match session.front.prestart(&reservation, &mut call).await {
                        Ok(immediate) => {
                            let immediate = immediate.or(prepared.immediate);
                            session.create(call, immediate.as_deref()).await
                        }
                        // BD-1: nothing is made of a call that its server refuses.
                        Err(refused) => delivered(refused),
                    }
                });
                let failed = |_| Reply::from(codes::internal("the task could not be made"));
                creating.await.unwrap_or_else(failed)
            }
            None => match holding.filter(|_| prepared.support != TaskSupport::Forbidden) {
                Some(holding) => {
                    call.ttl = prepared.ttl;
                    self.hold(call, prepared.delivery, holding, (stream, token), stopped)
                        .await
                }
                None => self.start(call, token, stream).await,
            },
        }
    }

    /// Runs a request that calls no tool like a call that is no task.
    pub(super) async fn run_request(
        &self,
        client: &Arc<Client>,
        runner: Arc<str>,
        request: Incoming,
        stream: &ResponseStream,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let token = params.and_then(meta::progress_token);
        let arrival = Arrival {
            client: client.clone(),
            http: request.http.clone(),
            reservation: None,
        };
        let call = self.new_call(arrival, request, runner, token.as_ref());
        self.start(call, token, stream).await
    }

    /// The call of a request that wants its progress under `token`.
    fn new_call(
        &self,
        arrival: Arrival,
        request: Incoming,
        runner: Arc<str>,
        token: Option<&Id>,
    ) -> NewCall {
        let Incoming { method, params, .. } = request;
        let origin = Origin {
            method: method.into(),
            tool: None,
            params,
            runner,
            progress_token: token.map(Id::to_raw),
            retry: Retry::Never,
            accepts: arrival.client.accepts(),
        };
        let mut call = NewCall::new(self.owner.clone(), origin);
        call.parts = Some(Arc::new(arrival));
        call
    }

    async fn start(&self, call: NewCall, token: Option<Id>, stream: &ResponseStream) -> Reply {
        match self.front.engine.start(call) {
            Ok(running) => {
                let mut hold = Hold::plainly(stream, token);
                match self.run_plainly(running, &mut hold, None).await {
                    Plainly::Replied(reply) => reply,
                    Plainly::Runs(_) => Reply::Nothing,
                }
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// Stored, then answered: the handle works when the client has it (V1-CREATE-12).
    async fn create(self: &Arc<Self>, call: NewCall, immediate: Option<&str>) -> Reply {
        let follower = self.front.follower(self);
        match self.front.engine.create_followed(call, follower).await {
            Ok(created) => {
                let task = created.task();
                Reply::Result(accepted(task, immediate))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// Runs a call whose caller waits, to its end or until the given moment: progress, log messages and questions travel
    /// before the answer, on its stream. Dropping this stops the work.
    pub(super) async fn run_plainly(
        &self,
        mut running: RunningCall,
        hold: &mut Hold<'_>,
        until: Option<Instant>,
    ) -> Plainly {
        let (call, stream) = (running.id(), hold.stream);
        let mut answers = self.expect_answers(call);
        let mut unheard = 0;
        let mut over = std::pin::pin!(sleep_until(until));
        loop {
            tokio::select! {
                biased;
                event = running.event() => match event {
                    Some(Event::Progress(progress)) => self.progress_on_stream(hold, &progress),
                    Some(Event::Plain(state)) => {
                        for ask in state.outstanding().into_iter().flat_map(|all| all.views()) {
                            if hold.asks(ask.key) {
                                let params = ask.params.map(Raw::borrow);
                                let line = write::request(&question_id(call, ask.key), ask.method, params);
                                stream.send(line);
                            }
                        }
                    }
                    Some(Event::Log(log)) => {
                        if let Some(line) = self.log_line(&log, None) {
                            stream.send(line);
                        }
                    }
                    Some(Event::Stored(_)) => {}
                    None => return Plainly::Replied(delivered(running.outcome().await)),
                },
                // A question that nobody can hear is not waited for for ever; a stream may be resumed meanwhile.
                () = tokio::time::sleep(LOOK), if hold.has_asked() => {
                    unheard = if stream.is_live() { 0 } else { unheard + 1 };
                    if unheard >= LOOKS {
                        return Plainly::Replied(Reply::Nothing);
                    }
                }
                Some((key, answer)) = answers.next() => {
                    // A question that is not open any more takes no answer.
                    let _ = running.answer([(key, answer)].into()).await;
                }
                () = &mut over => return Plainly::Runs(Box::new(running)),
            }
        }
    }
}

/// What became of a call whose caller waits.
pub(super) enum Plainly {
    /// It is answered.
    Replied(Reply),
    /// It still runs.
    Runs(Box<RunningCall>),
}

/// Only a task that is stored is announced.
fn accepted(task: &Committed<Task>, immediate: Option<&str>) -> Raw {
    let text = task.id.text();
    v1::create_result(&task.view(&text), immediate)
}

/// An outcome as the answer to the request itself.
pub(super) fn delivered(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => Reply::Result(body),
        Outcome::Error(error, ..) => Reply::Error(error),
        Outcome::Cancelled => Reply::from(codes::internal("the call was cancelled")),
    }
}

/// -32601 with a reason that says what to do.
fn refused(why: String) -> outlast_wire::envelope::ErrorObject {
    outlast_wire::envelope::ErrorObject::new(codes::METHOD_NOT_FOUND, why)
}

/// How often a call that has asked looks whether its caller is still there.
const LOOK: Duration = Duration::from_secs(30);

/// How many looks in a row may find nobody.
const LOOKS: u32 = 10;
