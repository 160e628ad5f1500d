//! Messages that a server sends on its own. Notifications go to the execution they belong to, input
//! requests to the [`ClientHandler`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::{InputKinds, InputResponse};
use outlast_wire::envelope::Id;
use outlast_wire::notice::{self, Progress};
use outlast_wire::v2::{self, Filter};
use outlast_wire::version::{self, Era};
use outlast_wire::{Raw, RawRef, codes, meta, method, object, v1};
use tokio::sync::watch;

use super::handler::{CONNECTION_ENDED, ClientHandler, REQUEST_WITHDRAWN, ServerInputRequest};
use super::receiver::Receiver;
use super::routes::Routes;
use super::rpc::RpcChannel;
use super::rpc_handler::{HandlerReply, HandlerReplyFuture, PeerRequest, RpcHandler};
use super::task_report::TaskReport;
use super::validate_request::validate_request;

/// Receives every notification that belongs to no call: logs, changed lists.
pub type NotificationHandler = Arc<dyn Fn(&str, Option<RawRef<'_>>) + Send + Sync>;

/// Handles all messages that a server sends on its own.
pub(crate) struct InboundHandler {
    /// The name of the server. The server must not choose it (V1-ELIC-9).
    pub(crate) server: Arc<str>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) handler: Arc<dyn ClientHandler>,
    /// The declared input kinds. They are fixed when the connection is opened.
    pub(crate) accepts: InputKinds,
    pub(crate) notices: Option<NotificationHandler>,
    /// Hosts tasks for the server, if enabled.
    receiver: Option<Arc<Receiver>>,
    tools_changed: AtomicU64,
    /// The last acknowledged subscription and its granted filter (V2-SUB-2).
    acknowledged: watch::Sender<Option<(Id, Filter)>>,
}

impl InboundHandler {
    pub(crate) fn new(
        server: Arc<str>,
        handler: Arc<dyn ClientHandler>,
        notices: Option<NotificationHandler>,
        receiver: Option<Receiver>,
    ) -> Self {
        Self {
            server,
            routes: Arc::default(),
            accepts: handler.accepts(),
            handler,
            notices,
            receiver: receiver.map(Arc::new),
            tools_changed: AtomicU64::new(0),
            acknowledged: watch::channel(None).0,
        }
    }

    /// Hosts tasks for the server, if enabled.
    pub(crate) fn receiver(&self) -> Option<&Arc<Receiver>> {
        self.receiver.as_ref()
    }

    /// How often the server has reported a change of its tools (V1-TOOL-9).
    pub(crate) fn tools_changed(&self) -> u64 {
        self.tools_changed.load(Ordering::Acquire)
    }

    /// The last acknowledged subscription.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<Option<(Id, Filter)>> {
        self.acknowledged.subscribe()
    }

    async fn handle_request(
        &self,
        channel: &Arc<RpcChannel>,
        request: PeerRequest,
    ) -> HandlerReply {
        if request.method == method::PING {
            return HandlerReply::result(Raw::empty_object());
        }
        // V1-CAP-13: older protocol versions have no tasks.
        let tasks = channel.version() == Some(version::LEGACY);
        let receiver = self.receiver.as_ref().filter(|_| tasks);
        if let Some(receiver) = receiver {
            let params = request.params.as_ref().map(Raw::borrow);
            if let Some(response) = receiver.serve(channel, &request.method, params).await {
                return HandlerReply::new(response);
            }
        }
        let kind = match validate_request(
            &request.method,
            request.params.as_ref(),
            self.accepts,
            Era::Legacy,
        ) {
            Ok(kind) => kind,
            Err(error) => return HandlerReply::error(&error),
        };
        let params = request.params.as_ref().map(Raw::borrow);
        let task = params.and_then(meta::related_task);
        let mut request = ServerInputRequest {
            kind,
            server: self.server.clone(),
            request: Some(request.id),
            key: None,
            call: self.routes.call_name(task.as_deref(), request.via.as_ref()),
            task,
            hosted_task: None,
            params: request.params,
        };
        if let Some(error) = self.handler.unavailable(&request) {
            return HandlerReply::error(&error);
        }
        // S1-26: without a receiver, `task` is ignored.
        if let Some(receiver) = receiver {
            match receiver.create_task(channel, request).await {
                Ok(replied) => return replied,
                Err(plain) => request = plain,
            }
        }
        let task = request.task.clone();
        // Dropped in the reverse order: the handler learns the reason before its future is dropped.
        let mut handling = self.handler.handle(request.clone());
        let waiting = WaitingRequest {
            handler: &self.handler,
            channel,
            request,
            is_answered: false,
        };
        let response = (&mut handling).await;
        waiting.answered();
        match task {
            Some(task) => self.reply_for(task, response),
            None => HandlerReply::new(response),
        }
    }
}

/// A request without a task that the handler has not answered. Dropping it reports the abort to the
/// handler.
struct WaitingRequest<'a> {
    handler: &'a Arc<dyn ClientHandler>,
    channel: &'a Arc<RpcChannel>,
    request: ServerInputRequest,
    is_answered: bool,
}

impl WaitingRequest<'_> {
    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let reason = if self.channel.is_closed() {
                CONNECTION_ENDED
            } else {
                REQUEST_WITHDRAWN
            };
            self.handler.request_aborted(&self.request, reason);
        }
    }
}

impl InboundHandler {
    /// The reply to an input request of a task. If the server refuses it, the poller of the task
    /// reports that.
    pub(crate) fn reply_for(&self, task: String, response: InputResponse) -> HandlerReply {
        let routes = self.routes.clone();
        HandlerReply::new(with_related_task(response, &task)).then(move |delivered| {
            if let Err(error) = delivered {
                routes.input_response_refused(&task, error);
            }
        })
    }
}

impl RpcHandler for InboundHandler {
    fn notified(&self, method: &str, params: Option<RawRef<'_>>) {
        match method {
            notice::PROGRESS => {
                if let Some(progress) = params.and_then(Progress::read) {
                    self.routes.forward_progress(progress);
                }
                return;
            }
            v1::method::STATUS => {
                if let Some(Ok(task)) = params.map(v1::read_task) {
                    self.routes.forward_status(TaskReport::plain(task));
                }
                return;
            }
            v2::method::TASKS => {
                if let Some(Ok(task)) = params.map(v2::read_detailed) {
                    self.routes.forward_status(task.into());
                }
                return;
            }
            v2::method::ACKNOWLEDGED => {
                let of = params.and_then(v2::subscription);
                if let (Some(of), Ok(filter)) = (of, Filter::read(params)) {
                    self.acknowledged.send_replace(Some((of, filter)));
                }
                return;
            }
            method::TOOLS_CHANGED => {
                self.tools_changed.fetch_add(1, Ordering::AcqRel);
            }
            method::ELICITATION_COMPLETE => {
                let id = params.and_then(|params| object::find(params, &["elicitationId"]));
                if let Some(id) = id.and_then(RawRef::text) {
                    self.handler.elicitation_complete(&self.server, &id);
                }
            }
            _ => {}
        }
        if let Some(notify) = &self.notices {
            notify(method, params);
        }
    }

    fn requested(
        self: Arc<Self>,
        channel: &Arc<RpcChannel>,
        request: PeerRequest,
    ) -> HandlerReplyFuture {
        let channel = channel.clone();
        Box::pin(async move { self.handle_request(&channel, request).await })
    }

    fn closed(&self, channel: &Arc<RpcChannel>) {
        if let Some(receiver) = self.receiver.clone() {
            let channel = channel.clone();
            tokio::spawn(async move { receiver.end_tasks(&channel).await });
        }
    }
}

/// Adds the task to the response to one of its input requests (V1-INPUT-9).
fn with_related_task(response: InputResponse, task: &str) -> InputResponse {
    let InputResponse::Result(result) = &response else {
        return response;
    };
    match meta::relate(result.borrow(), task) {
        Ok(marked) => InputResponse::Result(marked),
        // A response that is not an object is invalid.
        Err(_) => InputResponse::Error(
            codes::internal("the input response is not a valid result").to_raw(),
        ),
    }
}
