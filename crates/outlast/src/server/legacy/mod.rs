//! The server side for MCP up to 2025-11-25: [`LegacyRequest`] answers one request of a session.
//! Each larger method has its own file.

mod call;
mod deliver;
mod initialize;
mod subscribe;
mod tasks;
mod tasks_result;
mod tools_list;

use std::sync::Arc;

use outlast_engine::InputResponse;
use outlast_wire::envelope::{self, Id};
use outlast_wire::log::{self, Level};
use outlast_wire::v1::ServerTasks;
use outlast_wire::{Raw, RawRef, codes, method, notice, tool, v1};

use super::middleware::RequestHandler;
use super::session::{PreferenceChange, parse_input_request_id};
use super::{
    ActiveRequest, ClientHandle, HandlerFuture, HttpParts, IncomingRequest, Next, Reply,
    ResponseStream, Scopes, Session, StreamId, audit,
};
use crate::log_limit::LogLimit;
use initialize::{ALL_TASK_METHODS, declared_tasks};

static NOT_APPLIED: LogLimit = LogLimit::new();

/// A request of a session that is being handled: the session, and the stream of the response.
#[derive(Clone, Copy)]
pub(in crate::server) struct LegacyRequest<'a> {
    pub(in crate::server) session: &'a Arc<Session>,
    pub(in crate::server) stream: &'a ResponseStream,
}

impl Session {
    /// Handles one request over HTTP. Its response gets a separate stream if it needs one.
    pub(crate) fn handle(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        scopes: Scopes,
        http: Option<Arc<HttpParts>>,
    ) -> ActiveRequest {
        let stream = ResponseStream::unopened(self.clone());
        let id = request.id.clone();
        ActiveRequest::of_session(id, self.work(request, stream.clone(), scopes, http), stream)
    }

    /// Handles one request on stdio up to its reply. Dropping the future stops the handler.
    pub(crate) fn handle_on_stdio(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        stdio: StreamId,
    ) -> impl Future<Output = ()> + Send + use<> {
        let stream = ResponseStream::on_stdio(self.clone(), stdio);
        let id = request.id.clone();
        let work = self.work(request, stream.clone(), Scopes::ALL, None);
        async move { stream.finish(&id, &work.await) }
    }

    /// Handles a notification.
    pub(crate) fn notification(self: &Arc<Self>, notification: &envelope::Notification<'_>) {
        let (method, params) = (&*notification.method, notification.params);
        for middleware in &self.server.middleware {
            middleware.notification(method, params.map(RawRef::as_str));
        }
        self.handle_notification(method, params);
    }

    /// The handler of one request. The request is registered when this returns, so that a
    /// cancellation in the next message finds it. Cancelling the request drops the handler
    /// (V1-CANC-3).
    fn work(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        stream: Arc<ResponseStream>,
        scopes: Scopes,
        http: Option<Arc<HttpParts>>,
    ) -> HandlerFuture {
        let cancelled = stream.cancelled().clone();
        self.in_flight.begin(&request.id, cancelled.clone());
        let incoming = IncomingRequest {
            method: request.method.into_owned(),
            params: request.params.map(RawRef::to_raw),
            owner: self.owner.clone(),
            scopes,
            http,
        };
        let session = self.clone();
        let guard = InFlightGuard {
            session: self.clone(),
            id: request.id,
        };
        Box::pin(async move {
            let _guard = guard;
            let handler = RequestHandler::Legacy(LegacyRequest {
                session: &session,
                stream: &stream,
            });
            let next = Next::new(&session.server.middleware, handler);
            tokio::select! {
                biased;
                reply = next.run(incoming) => reply,
                () = cancelled.cancelled() => Reply::Nothing,
            }
        })
    }

    fn handle_notification(self: &Arc<Self>, method: &str, params: Option<RawRef<'_>>) {
        match method {
            // V1-CANCEL-10: only requests without a response are registered.
            notice::CANCELLED => {
                if let Some(params) = params
                    && let Some(request) = notice::cancelled_request(params)
                {
                    audit::request_cancelled(&self.owner, params);
                    self.in_flight.cancel(&request);
                }
            }
            v1::method::INITIALIZED => {
                let session = self.clone();
                tokio::spawn(async move { session.start_listening().await });
            }
            _ => {
                if let Some(client) = self.client() {
                    self.server.backend.notification(client, method, params);
                }
            }
        }
    }

    /// Handles the response to an input request; any other response is ignored.
    pub(crate) async fn handle_response(&self, response: envelope::Response<'_>) {
        let Some(id) = response.id else { return };
        let answer = match response.outcome {
            envelope::Outcome::Result(result) => InputResponse::Result(result.to_raw()),
            envelope::Outcome::Error(error) => InputResponse::Error(error.raw.to_raw()),
        };
        let Some(answer) = self.complete_client_request(&id, answer) else {
            return;
        };
        let Some((task, key)) = parse_input_request_id(&id) else {
            return;
        };
        let Some((key, answer)) = self.call_input_responses.respond(task, key, answer) else {
            return;
        };
        let answers = [(key, answer)].into();
        if let Err(error) = self
            .server
            .engine
            .provide_input(&self.scope(), task, answers)
            .await
        {
            NOT_APPLIED.log(|left_out| {
                tracing::info!(%task, %error, left_out, "could not apply an input response");
            });
        }
    }

    /// Sends a request of the client to the backend again, after a restart.
    pub(in crate::server) async fn replay_request(self: &Arc<Self>, method: &str, params: Raw) {
        let Some(client) = self.client() else {
            return;
        };
        if method == log::SET_LEVEL && self.server.backend.runner_for(method).is_none() {
            // The backend does not handle the request. The session has the level from its record
            // and applies it itself.
            return;
        }
        let request = IncomingRequest {
            method: method.to_owned(),
            params: Some(params),
            owner: self.owner.clone(),
            scopes: Scopes::ALL,
            http: None,
        };
        // The client had its response before the restart.
        let replayed = LegacyRequest {
            session: self,
            stream: &ResponseStream::abandoned(self.clone()),
        };
        if let Reply::Error(_) = replayed.forward(client, request).await {
            tracing::warn!(
                method,
                "could not restore a session preference after a restart"
            );
        }
    }
}

impl LegacyRequest<'_> {
    /// Replies to a request that has passed all middleware.
    pub(in crate::server) async fn dispatch(self, request: IncomingRequest) -> Reply {
        let method = request.method.as_str();
        let params = request.params.as_ref().map(Raw::borrow);
        match method {
            method::PING => return Reply::Result(Raw::empty_object()),
            v1::method::INITIALIZE => return self.initialize(params).await,
            _ => {}
        }
        let Some(client) = self.session.client() else {
            return Reply::from(codes::invalid_request(
                "the first request of a session must be `initialize`",
            ));
        };
        if method.starts_with("tasks/") {
            // No backend method has this prefix.
            return match self.offered_tasks(client) {
                Some(tasks) => self.handle_task_method(tasks, method, params).await,
                None => Reply::from(codes::method_not_found(method)),
            };
        }
        let tasks = match self.session.description().await {
            Ok(description) => {
                client.client_info().has_tasks() && declared_tasks(description).is_some()
            }
            Err(error) => return Reply::from(error),
        };
        match method {
            tool::LIST => {
                let params = request.params.as_ref();
                self.list_tools(client, tasks, params).await
            }
            tool::CALL => self.call_tool(client, request, tasks).await,
            log::SET_LEVEL => self.set_log_level(client, request).await,
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                self.subscribe_to(client, request).await
            }
            _ => self.forward(client, request).await,
        }
    }

    /// The task methods that the client may use (V1-CAP-13). Tasks are stored here, so this does
    /// not wait for a backend that has not described itself yet.
    fn offered_tasks(self, client: &ClientHandle) -> Option<ServerTasks> {
        if !client.client_info().has_tasks() {
            return None;
        }
        match self.session.known_description() {
            Some(description) => declared_tasks(description),
            None => match self.session.server.has_tasks(client) {
                Some(false) => None,
                Some(true) | None => Some(ALL_TASK_METHODS),
            },
        }
    }

    async fn handle_task_method(
        self,
        tasks: ServerTasks,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> Reply {
        match method {
            v1::method::GET => self.get_task(params).await,
            v1::method::RESULT => self.task_result(params).await,
            v1::method::LIST if tasks.list => self.list_tasks(params).await,
            v1::method::CANCEL => self.cancel_task(params).await,
            _ => Reply::from(codes::method_not_found(method)),
        }
    }

    /// Forwards a request to the backend, or to the engine if the backend names a runner for it.
    async fn forward(self, client: &Arc<ClientHandle>, request: IncomingRequest) -> Reply {
        let backend = &self.session.server.backend;
        match backend.runner_for(&request.method) {
            Some(runner) => self.run_request(client, runner, request).await,
            None => backend.request(client, request).await,
        }
    }

    async fn set_log_level(self, client: &Arc<ClientHandle>, request: IncomingRequest) -> Reply {
        let level = match Level::requested(request.params.as_ref().map(Raw::borrow)) {
            Ok(level) => level,
            Err(error) => return Reply::from(error),
        };
        let reply = match self.session.server.backend.runner_for(&request.method) {
            Some(_) => self.forward(client, request).await,
            None => Reply::Result(Raw::empty_object()),
        };
        self.apply_if_granted(PreferenceChange::Level(level), reply)
            .await
    }
}

/// Keeps a request registered as in flight until it is dropped.
pub(in crate::server) struct InFlightGuard {
    pub(in crate::server) session: Arc<Session>,
    pub(in crate::server) id: Id,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.session.in_flight.done(&self.id);
    }
}
