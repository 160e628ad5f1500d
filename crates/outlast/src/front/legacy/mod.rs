//! MCP up to 2025-11-25 as a server: one file for each method that has more than a line to it.

mod at_once;
mod call;
mod hold;
mod initialize;
mod subscribe;
mod tasks;
mod tools_list;
mod wait;

use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::Answer;
use outlast_wire::envelope::{self, Id, Message, write};
use outlast_wire::log::{self, Level};
use outlast_wire::{Raw, RawRef, codes, notice, v1};

use super::filter::End;
use super::follow::answered;
use super::wishes::{SUBSCRIBE, UNSUBSCRIBE, Wish};
use super::{Client, HttpParts, Incoming, Next, Reply, Session, Stopped, StreamId, audit};
use initialize::{ALL, declared};

impl Session {
    /// Handles one message. The answer to a request goes onto `stream`.
    ///
    /// A request is known when this returns, so that whoever cancels it in the next message finds it;
    /// its work is the future that is returned.
    pub(crate) async fn receive<'a>(
        self: &Arc<Self>,
        message: Message<'a>,
        stream: StreamId,
        http: Option<Arc<HttpParts>>,
    ) -> Option<Work> {
        match message {
            Message::Request(request) => return Some(self.take(request, stream, http)),
            Message::Notification(notification) => {
                for filter in &self.front.filters {
                    filter.notification(
                        &notification.method,
                        notification.params.map(RawRef::as_str),
                    );
                }
                self.notified(&notification.method, notification.params);
            }
            Message::Response(response) => self.answer(response).await,
        }
        None
    }

    /// The work of one request, to its answer. Cancelling the request drops it (V1-CANC-3).
    fn take(
        self: &Arc<Self>,
        request: envelope::Request<'_>,
        stream: StreamId,
        http: Option<Arc<HttpParts>>,
    ) -> Work {
        let cancelled = self.begin(&request.id);
        let id = request.id;
        let incoming = Incoming {
            method: request.method.into_owned(),
            params: request.params.map(RawRef::to_raw),
            owner: self.owner.clone(),
            http,
        };
        let session = self.clone();
        let known = Known {
            session: self.clone(),
            id: id.clone(),
        };
        Box::pin(async move {
            let stopped = Stopped::default();
            let next = Next {
                filters: &session.front.filters,
                end: End::Legacy(&session, stream, &stopped),
            };
            let cancelled = async {
                let cancelled = cancelled.await;
                if cancelled.is_ok() {
                    stopped.now();
                }
                cancelled
            };
            let reply = tokio::select! {
                biased;
                reply = next.run(incoming) => reply,
                Ok(()) = cancelled => Reply::Nothing,
            };
            drop(known);
            session.reply(&id, stream, reply);
        })
    }

    pub(in crate::front) fn reply(&self, id: &Id, stream: StreamId, reply: Reply) {
        match reply {
            Reply::Result(result) => self
                .board
                .finish(stream, write::result(id, result.borrow())),
            Reply::Error(error) => {
                self.board
                    .finish(stream, write::error(Some(id), error.borrow()));
            }
            Reply::Nothing => self.board.end(stream),
        }
    }

    /// Answers a request that has passed every filter.
    pub(in crate::front) async fn handle(
        self: &Arc<Self>,
        request: Incoming,
        stream: StreamId,
        stopped: &Stopped,
    ) -> Reply {
        let method = request.method.as_str();
        let params = request.params.as_ref().map(Raw::borrow);
        match method {
            "ping" => return Reply::Result(Raw::empty_object()),
            v1::method::INITIALIZE => return self.initialize(params).await,
            _ => {}
        }
        let about = match self.introduction().await {
            Ok(about) => Some(about),
            // What tasks there are does not depend on how their server is.
            Err(_) if method.starts_with("tasks/") => None,
            Err(error) => return Reply::from(error),
        };
        let Some(client) = self.client() else {
            return Reply::from(codes::invalid_request(
                "the session begins with `initialize`",
            ));
        };
        let has_tasks = client.peer().has_tasks();
        let tasks = about.map_or(Some(ALL), declared).filter(|_| has_tasks);
        match (method, tasks) {
            (outlast_wire::tool::LIST, _) => {
                let params = request.params.as_ref();
                self.list_tools(client, tasks.is_some(), params).await
            }
            (outlast_wire::tool::CALL, _) => {
                self.call_tool(client, request, tasks.is_some(), stream, stopped)
                    .await
            }
            (v1::method::GET, Some(_)) => self.get_task(params).await,
            (v1::method::RESULT, Some(_)) => self.task_result(params, stream).await,
            (v1::method::LIST, Some(tasks)) if tasks.list => self.list_tasks(params).await,
            (v1::method::CANCEL, Some(_)) => self.cancel_task(params).await,
            // No method of a service begins like this.
            _ if method.starts_with("tasks/") => Reply::from(codes::method_not_found(method)),
            (log::SET_LEVEL, _) => self.set_log_level(client, request, stream).await,
            (SUBSCRIBE | UNSUBSCRIBE, _) => self.subscribe_to(client, request, stream).await,
            _ => self.pass_on(client, request, stream).await,
        }
    }

    /// Lets the service answer, or the engine run the request by the runner that the service names.
    async fn pass_on(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: Incoming,
        stream: StreamId,
    ) -> Reply {
        match self.front.service.runs(&request.method) {
            Some(runner) => self.run_request(client, runner, request, stream).await,
            None => self.front.service.request(client, request).await,
        }
    }

    async fn set_log_level(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: Incoming,
        stream: StreamId,
    ) -> Reply {
        let level = match Level::wanted(request.params.as_ref().map(Raw::borrow)) {
            Ok(level) => level,
            Err(error) => return Reply::from(error),
        };
        let reply = match self.front.service.runs(&request.method) {
            Some(_) => self.pass_on(client, request, stream).await,
            None => Reply::Result(Raw::empty_object()),
        };
        self.granted(Wish::Level(level), reply).await
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<RawRef<'_>>) {
        match method {
            // V1-CANCEL-10: only requests that are still unanswered are known here.
            notice::CANCELLED => {
                if let Some(params) = params
                    && let Some(request) = notice::cancelled_request(params)
                {
                    audit::request_cancelled(&self.owner, params);
                    self.cancel(&request);
                }
            }
            v1::method::INITIALIZED => {
                let session = self.clone();
                tokio::spawn(async move { session.listens().await });
            }
            _ => {
                if let Some(client) = self.client() {
                    self.front.service.notification(client, method, params);
                }
            }
        }
    }

    /// Takes the answer to a question of ours; any other response is ignored.
    async fn answer(&self, response: envelope::Response<'_>) {
        let Some(id) = response.id else { return };
        let answer = match response.outcome {
            envelope::Outcome::Result(result) => Answer::Result(result.to_raw()),
            envelope::Outcome::Error(error) => Answer::Error(error.raw.to_raw()),
        };
        let Some(answer) = self.answer_outside(&id, answer) else {
            return;
        };
        let Some((task, key)) = answered(&id) else {
            return;
        };
        let Some((key, answer)) = self.answer_call(task, key, answer) else {
            return;
        };
        let answers = [(key, answer)].into();
        if let Err(error) = self.front.engine.answer(&self.scope(), task, answers).await {
            tracing::info!(%task, %error, "an answer was not taken");
        }
    }
}

/// What is left to do for a request. In a place of its own from the beginning: it is large and goes from hand to hand.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// That a request is in flight, until it is answered or given up.
pub(in crate::front) struct Known {
    pub(in crate::front) session: Arc<Session>,
    pub(in crate::front) id: Id,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.session.done(&self.id);
    }
}
