//! How a call reaches a legacy client: progress, log messages and input requests on the stream of
//! the response, then the outcome or a ticket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{NewCall, Progress};
use outlast_engine::store::Snapshot;
use outlast_engine::{Committed, InputKey, InputResponse, Outcome, Outstanding, Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::log::Log;
use outlast_wire::{Raw, RawRef, codes, notice};
use tokio_util::sync::CancellationToken;

use super::LegacyRequest;
use crate::engine_errors::to_wire;
use crate::server::delivery::tickets::{self, TicketTool, TicketToolArguments};
use crate::server::delivery::{
    self, CallKey, CallSource, DeliveryOutcome, DeliveryPlan, InputDelivery,
};
use crate::server::session::{InputResponseReceiver, input_request_id, progress_params};
use crate::server::{ClientHandle, Reply, Session, TaskPolicy, WaitPolicy};

/// Delivers to a caller that waits for the response of a legacy request.
pub(super) struct LegacyChannel<'a> {
    request: LegacyRequest<'a>,
    /// The progress token of the request.
    token: Option<Id>,
    /// Input requests that were sent.
    sent_requests: BTreeSet<String>,
    /// Input responses, until the call becomes a task.
    responses: Option<InputResponseReceiver<'a>>,
    /// The key of the call, if a repeated call may continue it.
    key: Option<CallKey>,
    /// Set when the call has become a task.
    promoted: Option<CancelTaskOnDrop>,
}

impl LegacyRequest<'_> {
    /// How long the client waits for its calls; `None` if the backend has no policy.
    pub(super) fn wait_policy(self, client: &ClientHandle) -> Option<WaitPolicy> {
        let policy = self.session.server.backend.wait_policy(client)?;
        Some(if self.session.uses_tasks(client) {
            WaitPolicy::UNLIMITED
        } else {
            policy
        })
    }

    /// Runs a call whose caller waits for the outcome. With a `policy`, the call may become a task
    /// meanwhile.
    pub(super) async fn run(
        self,
        call: NewCall,
        policy: Option<(WaitPolicy, TaskPolicy)>,
        mut channel: LegacyChannel<'_>,
    ) -> Reply {
        let engine = &self.session.server.engine;
        let input = InputDelivery::Nested;
        let mut plan = DeliveryPlan::inline(input);
        if let Some((wait_policy, task_policy)) = policy {
            let grace = match task_policy {
                TaskPolicy::After(grace) => grace,
                TaskPolicy::Always | TaskPolicy::AfterInput => TaskPolicy::DEFAULT_GRACE,
            };
            plan = DeliveryPlan::waiting(wait_policy.limits(channel.token.is_some()), input)
                .promoted_after(grace);
            channel.key = CallKey::new(&self.session.owner, &call.origin);
        }
        if let Some(task) = self.pending_task(channel.key.as_ref()).await {
            return self.wait_for(task, plan, channel).await;
        }
        match engine.start(call) {
            Ok(running) => {
                let responses = &self.session.call_input_responses;
                channel.responses = Some(responses.register(running.id()));
                self.deliver_by(CallSource::call(running), plan, channel)
                    .await
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// The running task of an equal call, whose caller has repeated it.
    async fn pending_task(self, key: Option<&CallKey>) -> Option<TaskId> {
        let server = &self.session.server;
        let task = server.pending_calls.find(key?)?;
        match server.engine.get(&self.session.scope(), task).await {
            Ok(Snapshot::Open(_)) => Some(task),
            _ => {
                server.pending_calls.remove(key?, task);
                None
            }
        }
    }

    /// Waits for a task.
    async fn wait_for(self, task: TaskId, plan: DeliveryPlan, channel: LegacyChannel<'_>) -> Reply {
        let engine = &self.session.server.engine;
        match CallSource::task(engine, &self.session.scope(), task).await {
            Ok(source) => self.deliver_by(source, plan, channel).await,
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    async fn deliver_by(
        self,
        source: CallSource,
        plan: DeliveryPlan,
        mut channel: LegacyChannel<'_>,
    ) -> Reply {
        let (session, scope) = (self.session, self.session.scope());
        let server = &session.server;
        match delivery::follow(&server.engine, &scope, source, plan, &mut channel).await {
            DeliveryOutcome::Outcome(outcome) => outcome_reply(outcome),
            DeliveryOutcome::TaskEnded(task, settled) => {
                server.drop_follower(task, &Arc::downgrade(session));
                if let (Some(key), Some(_)) = (&channel.key, &channel.promoted) {
                    server.pending_calls.remove(key, task);
                }
                tickets::outcome_reply(task, settled)
            }
            DeliveryOutcome::Ticket(task) => {
                server.drop_follower(task, &Arc::downgrade(session));
                // From here on its input requests are delivered like those of any task.
                server.follow(session, task);
                server.ticket(&scope, task).await
            }
            DeliveryOutcome::Refused(error) => Reply::from(error),
            // A legacy caller gets neither a handle nor input requests as the response.
            DeliveryOutcome::Handle(_)
            | DeliveryOutcome::Input(..)
            | DeliveryOutcome::TaskInput(..) => Reply::Nothing,
            DeliveryOutcome::Abandoned => Reply::Nothing,
        }
    }

    /// Replies to a call of a ticket tool.
    pub(super) async fn call_ticket_tool(
        self,
        tool: TicketTool,
        params: RawRef<'_>,
        policy: WaitPolicy,
        channel: LegacyChannel<'_>,
    ) -> Reply {
        let arguments = match TicketToolArguments::read(params) {
            Ok(arguments) => arguments,
            Err(error) => return Reply::from(error),
        };
        let (server, scope) = (&self.session.server, self.session.scope());
        if tool == TicketTool::Status {
            return server.task_status(&scope, arguments.task).await;
        }
        let task = match arguments.required_task() {
            Ok(task) => task,
            Err(error) => return Reply::from(error),
        };
        match tool {
            TicketTool::Cancel => server.cancel_by_ticket(&scope, task).await,
            _ => {
                let (limit, heartbeat) = policy.limits(channel.token.is_some());
                let limit: Option<Duration> = arguments.limit.into_iter().chain(limit).min();
                // The input requests go to this caller, not to the session that followed the task.
                server.drop_follower(task, &Arc::downgrade(self.session));
                let plan = DeliveryPlan::waiting((limit, heartbeat), InputDelivery::Nested);
                self.wait_for(task, plan, channel).await
            }
        }
    }
}

impl<'a> LegacyChannel<'a> {
    /// The channel to the caller of `request`, with its progress token.
    pub(super) fn new(request: LegacyRequest<'a>, token: Option<Id>) -> Self {
        Self {
            request,
            token,
            sent_requests: BTreeSet::new(),
            responses: None,
            key: None,
            promoted: None,
        }
    }
}

impl delivery::DeliveryChannel for LegacyChannel<'_> {
    async fn send_progress(&mut self, progress: &Progress) {
        let params = self.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            let line = write::notification(notice::PROGRESS, Some(params.borrow()));
            self.request.stream.send(line);
        }
    }

    async fn send_log(&mut self, log: &Log) {
        if let Some(line) = self.request.session.log_line(log, None) {
            self.request.stream.send(line);
        }
    }

    fn send_input_requests(&mut self, call: TaskId, open: &Outstanding) -> bool {
        for ask in open.views() {
            if self.sent_requests.insert(ask.key.to_owned()) {
                let params = ask.params.map(Raw::borrow);
                let line = write::request(&input_request_id(call, ask.key), ask.method, params);
                self.request.stream.send(line);
            }
        }
        !self.sent_requests.is_empty()
    }

    async fn next_input_response(&mut self) -> (InputKey, InputResponse) {
        if let Some(responses) = &mut self.responses
            && let Some(answer) = responses.next().await
        {
            return answer;
        }
        std::future::pending().await
    }

    fn is_live(&self) -> bool {
        self.request.stream.is_live()
    }

    fn on_promoted(&mut self, task: &Committed<Task>) -> BTreeMap<InputKey, InputResponse> {
        let LegacyRequest { session, stream } = self.request;
        // Its input requests are sent to no other session.
        session.server.claim_follower(task.id, session);
        if let Some(key) = &self.key {
            session.server.pending_calls.add(key.clone(), task.id);
        }
        self.promoted = Some(CancelTaskOnDrop {
            session: session.clone(),
            task: task.id,
            cancelled: stream.cancelled().clone(),
        });
        self.responses
            .take()
            .map(InputResponseReceiver::close)
            .unwrap_or_default()
    }
}

/// The reply with the outcome of a call.
pub(super) fn outcome_reply(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Result(body) | Outcome::ToolError(body, _) => Reply::Result(body),
        Outcome::Error(error, ..) => Reply::Error(error),
        Outcome::Cancelled => Reply::from(codes::internal("the call was cancelled")),
    }
}

/// Cancels the task of a call whose request the client cancelled (BR-CAN-9).
struct CancelTaskOnDrop {
    session: Arc<Session>,
    task: TaskId,
    cancelled: CancellationToken,
}

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        if !self.cancelled.is_cancelled() {
            return;
        }
        let (session, task) = (self.session.clone(), self.task);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let scope = session.scope();
                let requested = session.server.engine.request_cancel(&scope, task).await;
                if let Err(error) = requested {
                    tracing::info!(%task, %error, "could not cancel the task of a cancelled call");
                }
            });
        }
    }
}
