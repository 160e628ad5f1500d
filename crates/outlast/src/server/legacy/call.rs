//! `tools/call` of a legacy session: one way to run the call, two ways to deliver it (S2-11,
//! S2-38).

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::NewCall;
use outlast_engine::{Committed, Origin, Task};
use outlast_wire::envelope::Id;
use outlast_wire::v1::{TaskSupport, ToolCall};
use outlast_wire::{Raw, codes, meta, v1};

use super::LegacyRequest;
use super::deliver::{LegacyChannel, outcome_reply};
use crate::engine_errors::to_wire;
use crate::server::delivery::tickets::TicketTool;
use crate::server::{ClientHandle, IncomingRequest, Reply, RequestParts, Session};

impl LegacyRequest<'_> {
    pub(super) async fn call_tool(
        self,
        client: &Arc<ClientHandle>,
        request: IncomingRequest,
        tasks: bool,
    ) -> Reply {
        let Some(params) = &request.params else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        let Some(tool_call) = ToolCall::read(params.borrow()) else {
            return Reply::from(codes::invalid_params("`name` must be a string"));
        };
        if let Err(error) = outlast_wire::tool::check_arguments(params.borrow()) {
            return Reply::from(error);
        }
        let name = &*tool_call.name;
        let policy = self.wait_policy(client);
        if let Some(policy) = policy.filter(|policy| policy.tickets)
            && let Some(tool) = TicketTool::named(name)
        {
            let channel = LegacyChannel::new(self, tool_call.progress_token());
            return self
                .call_ticket_tool(tool, params.borrow(), policy, channel)
                .await;
        }
        let prepared = match self.session.server.prepare(client, name).await {
            Ok(Some(prepared)) => prepared,
            Ok(None) => {
                return Reply::from(codes::invalid_params(format!("unknown tool: {name}")));
            }
            Err(error) => return Reply::from(error),
        };
        // V1-CAP-11: without the capability, `task` is ignored.
        let task = match tasks.then(|| tool_call.task_request()).transpose() {
            Ok(task) => task.flatten(),
            Err(error) => return Reply::from(error),
        };
        match (task, prepared.support) {
            (Some(_), TaskSupport::Forbidden) => {
                // V1-TOOL-3: before anything runs.
                let why = format!("tool {name} does not run as a task; call it without `task`");
                return Reply::from(task_support_error(why));
            }
            (None, TaskSupport::Required) if tasks => {
                // V1-TOOL-6.
                let why = format!("tool {name} runs only as a task; call it with `task`");
                return Reply::from(task_support_error(why));
            }
            _ => {}
        }
        let (tool, token) = (Some(Arc::from(name)), tool_call.progress_token());
        let parts = RequestParts {
            client: client.clone(),
            http: request.http.clone(),
            reservation: prepared.reservation.clone(),
        };
        let mut call = self.new_call(parts, request, prepared.runner, token.as_ref());
        call.origin.tool = tool;
        call.origin.retry = prepared.retry;
        match task {
            Some(task) => {
                self.session.mark_task_use();
                call.ttl = task.ttl_ms.or(prepared.ttl).map(Duration::from_millis);
                let Some(reservation) = prepared.reservation.filter(|_| prepared.prestarts) else {
                    return create(self.session, call, prepared.immediate.as_deref()).await;
                };
                let session = self.session.clone();
                // BR-CREATE-10: the task is created even if the client disconnects meanwhile.
                let created = tokio::spawn(async move {
                    match session.server.prestart(&reservation, &mut call).await {
                        Ok(immediate) => {
                            let immediate = immediate.or(prepared.immediate);
                            create(&session, call, immediate.as_deref()).await
                        }
                        // BD-1: no task is stored for a call that the upstream rejects.
                        Err(refused) => outcome_reply(refused),
                    }
                });
                let failed = |_| {
                    Reply::from(codes::internal(
                        "could not create the task; the server log has the cause",
                    ))
                };
                created.await.unwrap_or_else(failed)
            }
            None => {
                let policy = policy.filter(|_| prepared.support != TaskSupport::Forbidden);
                if policy.is_some() {
                    call.ttl = prepared.ttl.map(Duration::from_millis);
                }
                let policy = policy.map(|policy| (policy, prepared.task_policy));
                let channel = LegacyChannel::new(self, token);
                self.run(call, policy, channel).await
            }
        }
    }

    /// Runs a request that is not a tool call like a plain call.
    pub(super) async fn run_request(
        self,
        client: &Arc<ClientHandle>,
        runner: Arc<str>,
        request: IncomingRequest,
    ) -> Reply {
        let params = request.params.as_ref().map(Raw::borrow);
        let token = params.and_then(meta::progress_token);
        let parts = RequestParts {
            client: client.clone(),
            http: request.http.clone(),
            reservation: None,
        };
        let call = self.new_call(parts, request, runner, token.as_ref());
        let channel = LegacyChannel::new(self, token);
        self.run(call, None, channel).await
    }

    /// The engine's call for a request with this progress token.
    fn new_call(
        self,
        parts: RequestParts,
        request: IncomingRequest,
        runner: Arc<str>,
        token: Option<&Id>,
    ) -> NewCall {
        let IncomingRequest { method, params, .. } = request;
        let mut origin = Origin::new(method, runner, parts.client.accepts());
        origin.params = params;
        origin.progress_token = token.map(Id::to_raw);
        let mut call = NewCall::new(self.session.owner.clone(), origin);
        call.local_data = Some(Arc::new(parts));
        call
    }
}

/// Stores the task before the reply, so that the handle is valid when the client gets it
/// (V1-CREATE-12).
async fn create(session: &Arc<Session>, call: NewCall, immediate: Option<&str>) -> Reply {
    let server = &session.server;
    let follower = server.follower(session);
    match server.engine.create_followed(call, follower).await {
        Ok(created) => {
            let task = created.task();
            Reply::Result(create_result(task, immediate))
        }
        Err(error) => Reply::from(to_wire(&error)),
    }
}

/// The reply with the handle. Takes a committed task: no handle precedes the commit.
fn create_result(task: &Committed<Task>, immediate: Option<&str>) -> Raw {
    let text = task.id.text();
    v1::create_result(&task.view(&text, task.updated), immediate)
}

/// −32601 with a reason that says what to do.
fn task_support_error(why: String) -> outlast_wire::envelope::ErrorObject {
    outlast_wire::envelope::ErrorObject::new(codes::METHOD_NOT_FOUND, why)
}
