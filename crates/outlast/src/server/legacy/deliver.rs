//! How a call reaches a client of 2025-11-25: progress, log messages and input requests on the stream of the response,
//! then the outcome, or a ticket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{NewCall, Progress};
use outlast_engine::store::Snapshot;
use outlast_engine::{Answer, AskKey, Committed, Outcome, Outstanding, Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::log::Log;
use outlast_wire::{Raw, RawRef, codes, notice};
use tokio_util::sync::CancellationToken;

use crate::server::delivery::tickets::{self, Helper, HelperArguments};
use crate::server::delivery::{self, Delivered, InputDelivery, Key, Source, Terms};
use crate::server::errors::to_wire;
use crate::server::session::{Answers, progress_params, question_id};
use crate::server::{Client, Delivery, Holding, Reply, ResponseStream, Session};

/// A caller that waits for the response to a request.
pub(super) struct Caller<'a> {
    session: &'a Arc<Session>,
    stream: &'a ResponseStream,
    /// The token under which it wants progress.
    token: Option<Id>,
    /// Input requests that were sent.
    asked: BTreeSet<String>,
    /// Input responses, while the call is no task.
    answers: Option<Answers<'a>>,
    /// The call, if it may be found again when it is repeated.
    key: Option<Key>,
    /// The task that the call has become.
    promoted: Option<Promoted>,
}

impl Session {
    /// How calls of the client are held; `None` if the service does not say.
    pub(super) fn holding(&self, client: &Client) -> Option<Holding> {
        let holding = self.front.service.holding(client)?;
        Some(if self.uses_tasks(client) {
            Holding::ENDLESS
        } else {
            holding
        })
    }

    /// Runs a call whose caller waits for the outcome. `held` says how, if the call may become a task meanwhile.
    pub(super) async fn run(
        self: &Arc<Self>,
        call: NewCall,
        held: Option<(Holding, Delivery)>,
        mut caller: Caller<'_>,
    ) -> Reply {
        let engine = &self.front.engine;
        let input = InputDelivery::Nested;
        let mut terms = Terms::inline(input);
        if let Some((holding, delivery)) = held {
            let grace = match delivery {
                Delivery::Within(grace) => grace,
                Delivery::Always | Delivery::OnceAnswered => Delivery::GRACE,
            };
            terms = Terms::waiting(holding.terms(caller.token.is_some()), input).held_after(grace);
            caller.key = Key::of(&self.owner, &call.origin);
        }
        if let Some(task) = self.repeated(caller.key.as_ref()).await {
            return self.wait_for(task, terms, caller).await;
        }
        match engine.start(call) {
            Ok(running) => {
                caller.answers = Some(self.call_answers.expect(running.id()));
                self.deliver_by(Source::call(running), terms, caller).await
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// The task of the same call that still runs for a caller that has repeated it.
    async fn repeated(&self, key: Option<&Key>) -> Option<TaskId> {
        let task = self.front.held.find(key?)?;
        match self.front.engine.get(&self.scope(), task).await {
            Ok(Snapshot::Open(_)) => Some(task),
            _ => {
                self.front.held.remove(key?, task);
                None
            }
        }
    }

    /// Waits for a task.
    async fn wait_for(self: &Arc<Self>, task: TaskId, terms: Terms, caller: Caller<'_>) -> Reply {
        match Source::task(&self.front.engine, &self.scope(), task).await {
            Ok(source) => self.deliver_by(source, terms, caller).await,
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    async fn deliver_by(
        self: &Arc<Self>,
        source: Source,
        terms: Terms,
        mut caller: Caller<'_>,
    ) -> Reply {
        let (engine, scope) = (&self.front.engine, self.scope());
        match delivery::follow(engine, &scope, source, terms, &mut caller).await {
            Delivered::Outcome(outcome) => delivered(outcome),
            Delivered::Settled(task, settled) => {
                self.front.drop_follower(task, &Arc::downgrade(self));
                if let (Some(key), Some(_)) = (&caller.key, &caller.promoted) {
                    self.front.held.remove(key, task);
                }
                tickets::settled(task, settled)
            }
            Delivered::Ticket(task) => {
                self.front.drop_follower(task, &Arc::downgrade(self));
                // Its input requests are delivered like those of any task from now on.
                self.front.follow(self, task);
                self.front.ticket(&scope, task).await
            }
            Delivered::Refused(error) => Reply::from(error),
            // A caller of this era gets neither a handle nor input requests as the response.
            Delivered::Handle(_) | Delivered::Input(..) | Delivered::TaskInput(..) => {
                Reply::Nothing
            }
            Delivered::Abandoned => Reply::Nothing,
        }
    }

    /// Answers a helper tool.
    pub(super) async fn help(
        self: &Arc<Self>,
        helper: Helper,
        params: RawRef<'_>,
        holding: Holding,
        caller: Caller<'_>,
    ) -> Reply {
        let arguments = match HelperArguments::read(params) {
            Ok(arguments) => arguments,
            Err(error) => return Reply::from(error),
        };
        if helper == Helper::Status {
            return self.front.status_of(&self.scope(), arguments.task).await;
        }
        let task = match arguments.needed() {
            Ok(task) => task,
            Err(error) => return Reply::from(error),
        };
        match helper {
            Helper::Cancel => self.front.stop(&self.scope(), task).await,
            _ => {
                let (limit, heartbeat) = holding.terms(caller.token.is_some());
                let limit: Option<Duration> = arguments.time.into_iter().chain(limit).min();
                // The input requests go to this caller, not to a session that followed the task.
                self.front.drop_follower(task, &Arc::downgrade(self));
                let terms = Terms::waiting((limit, heartbeat), InputDelivery::Nested);
                self.wait_for(task, terms, caller).await
            }
        }
    }
}

impl<'a> Caller<'a> {
    /// The caller that reads `stream` and wants its progress under `token`.
    pub(super) fn new(
        session: &'a Arc<Session>,
        stream: &'a ResponseStream,
        token: Option<Id>,
    ) -> Self {
        Self {
            session,
            stream,
            token,
            asked: BTreeSet::new(),
            answers: None,
            key: None,
            promoted: None,
        }
    }
}

impl delivery::Caller for Caller<'_> {
    async fn progress(&mut self, progress: &Progress) {
        let params = self.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            let line = write::notification(notice::PROGRESS, Some(params.borrow()));
            self.stream.send(line);
        }
    }

    async fn log(&mut self, log: &Log) {
        if let Some(line) = self.session.log_line(log, None) {
            self.stream.send(line);
        }
    }

    fn ask(&mut self, call: TaskId, open: &Outstanding) -> bool {
        for ask in open.views() {
            if self.asked.insert(ask.key.to_owned()) {
                let params = ask.params.map(Raw::borrow);
                let line = write::request(&question_id(call, ask.key), ask.method, params);
                self.stream.send(line);
            }
        }
        !self.asked.is_empty()
    }

    async fn answer(&mut self) -> (AskKey, Answer) {
        if let Some(answers) = &mut self.answers
            && let Some(answer) = answers.next().await
        {
            return answer;
        }
        std::future::pending().await
    }

    fn is_live(&self) -> bool {
        self.stream.is_live()
    }

    fn promoted(&mut self, task: &Committed<Task>) -> BTreeMap<AskKey, Answer> {
        // No other session is sent its input requests.
        self.session.front.claim_follower(task.id, self.session);
        if let Some(key) = &self.key {
            self.session.front.held.add(key.clone(), task.id);
        }
        self.promoted = Some(Promoted {
            session: self.session.clone(),
            task: task.id,
            cancelled: self.stream.cancelled().clone(),
        });
        self.answers.take().map(Answers::close).unwrap_or_default()
    }
}

/// An outcome as the response to the request itself.
pub(super) fn delivered(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => Reply::Result(body),
        Outcome::Error(error, ..) => Reply::Error(error),
        Outcome::Cancelled => Reply::from(codes::internal("the call was cancelled")),
    }
}

/// Stops the task of a call that its caller cancelled (BR-CAN-9).
struct Promoted {
    session: Arc<Session>,
    task: TaskId,
    cancelled: CancellationToken,
}

impl Drop for Promoted {
    fn drop(&mut self) {
        if !self.cancelled.is_cancelled() {
            return;
        }
        let (session, task) = (self.session.clone(), self.task);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let scope = session.scope();
                let asked = session.front.engine.request_cancel(&scope, task).await;
                if let Err(error) = asked {
                    tracing::info!(%task, %error, "could not cancel the task of a cancelled call");
                }
            });
        }
    }
}
