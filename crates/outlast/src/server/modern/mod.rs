//! The server side for MCP 2026-07-28: stateless requests that describe themselves.
//!
//! Each larger method has its own file. The transports carry requests and responses.
//! [`RequestMeta::read`] decides the era of a request.

mod call;
mod caller;
mod discover;
mod finish;
mod input_responses;
mod listen;
mod mrtr;
mod notification_sink;
mod passthrough;
mod request_meta;
mod request_state;
mod stdio;
mod suspended;
mod tasks;
mod ticket_tools;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::v2::{self, method};
use outlast_wire::{Raw, codes, log, tool, v1, version};
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use super::list_change::ChangeBroadcast;
use super::middleware::RequestHandler;
use super::{
    ActiveRequest, BackendDescription, ClientHandle, ClientInfo, IncomingRequest, McpServer, Next,
    Reply,
};
use finish::acknowledges;
use suspended::SuspendedCalls;

pub(crate) use caller::Caller;
pub(crate) use notification_sink::NotificationSink;
pub(crate) use request_meta::{RequestMeta, is_modern_only, missing_meta};
pub(crate) use stdio::stdio_request_meta;

/// The state of a server for modern requests.
pub(crate) struct ModernState {
    pub(super) changes: ChangeBroadcast,
    suspended_calls: Arc<SuspendedCalls>,
    /// The server info, once the backend has described itself.
    info: OnceCell<Raw>,
    /// Whether the backend has declared that some tool can run as a task.
    tasks: AtomicBool,
}

/// One modern request.
pub(crate) struct ModernRequest {
    pub(crate) server: Arc<McpServer>,
    pub(crate) id: Id,
    pub(crate) caller: Caller,
    pub(crate) meta: RequestMeta,
    /// Whether other nodes create tasks in the same store.
    pub(crate) has_shared_tasks: bool,
    pub(crate) notifications: NotificationSink,
    /// Resolves when the server closes.
    pub(crate) closing: Closing,
}

/// Makes a future that resolves when a server closes.
pub(crate) type Closing = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Default for ModernState {
    fn default() -> Self {
        Self {
            changes: ChangeBroadcast::default(),
            suspended_calls: SuspendedCalls::new(suspended::RETRY_TIMEOUT),
            info: OnceCell::new(),
            tasks: AtomicBool::new(false),
        }
    }
}

impl McpServer {
    /// Whether a request of this method may take long and send messages before its reply.
    pub(crate) fn may_stream(&self, method: &str) -> bool {
        match method {
            tool::CALL | method::LISTEN => true,
            tool::LIST | method::DISCOVER | method::GET | method::UPDATE | method::CANCEL => false,
            removed if REMOVED_METHODS.contains(&removed) => false,
            other => self.backend.runner_for(other).is_some(),
        }
    }
}

impl ModernRequest {
    /// Handles a request over HTTP. Messages precede the reply only if the caller takes a stream.
    pub(crate) fn handle_http(
        mut self,
        request: IncomingRequest,
        takes_stream: bool,
    ) -> ActiveRequest {
        // Middleware can send messages before every reply.
        let may_stream =
            !self.server.middleware.is_empty() || self.server.may_stream(&request.method);
        let messages = if takes_stream && may_stream {
            let (send, messages) = mpsc::channel(MAX_UNREAD_NOTIFICATIONS);
            self.notifications = NotificationSink::Stream(send);
            Some(messages)
        } else {
            None
        };
        let id = self.id.clone();
        let work = Box::pin(async move { self.respond(request).await });
        ActiveRequest::of_request(id, work, messages)
    }

    /// Replies to a request. Dropping the future stops the work, except tasks.
    async fn respond(&self, request: IncomingRequest) -> Reply {
        if let Err(error) = self.meta.check_version() {
            return Reply::from(error);
        }
        let middleware = &self.server.middleware;
        let acknowledges = acknowledges(&request.method);
        let cancelled = CancellationToken::new();
        // Cancels if this future is dropped before its reply.
        let guard = cancelled.clone().drop_guard();
        let handler = RequestHandler::Modern(self, &cancelled);
        let reply = Next::new(middleware, handler).run(request).await;
        guard.disarm();
        if middleware.is_empty() {
            reply
        } else {
            self.finish_filtered(acknowledges, reply).await
        }
    }

    /// Replies to a request that has passed all middleware.
    pub(in crate::server) async fn handle(&self, request: IncomingRequest) -> Reply {
        let cacheable = finish::is_cacheable(&request.method);
        let answer = self.dispatch(request).await;
        self.finish(answer.unwrap_or_else(finish::DraftReply::from), cacheable)
            .await
    }

    async fn dispatch(&self, request: IncomingRequest) -> Result<finish::DraftReply, ErrorObject> {
        let params = request.params.as_ref().map(Raw::borrow);
        match request.method.as_str() {
            method::DISCOVER => self.discover().await,
            // Boxed, so that the future of `tasks/get` stays small.
            method::LISTEN => Box::pin(self.listen(params)).await,
            method::GET => {
                self.check_tasks_offered(&request.method).await?;
                self.check_tasks_declared()?;
                self.get_task(params).await
            }
            method::UPDATE => {
                self.check_tasks_offered(&request.method).await?;
                self.check_tasks_declared()?;
                self.update_task(params).await
            }
            method::CANCEL => {
                self.check_tasks_offered(&request.method).await?;
                self.check_tasks_declared()?;
                self.cancel_task(params).await
            }
            tool::CALL => Box::pin(self.call_tool(request)).await,
            // V2-ERA-9, V2-ERR-6, V2-ERR-7.
            removed if REMOVED_METHODS.contains(&removed) => Err(codes::method_not_found(removed)),
            _ => Box::pin(self.forward(request)).await,
        }
    }

    /// Rejects a task method if the server offers no tasks (V2-CAP-13).
    async fn check_tasks_offered(&self, method: &str) -> Result<(), ErrorObject> {
        if self.server.modern.tasks.load(Ordering::Relaxed) {
            return Ok(());
        }
        let offered = match self.server.has_tasks(&self.client()) {
            Some(offered) => offered,
            // The backend need not be connected here.
            None if self.has_shared_tasks => true,
            // Tasks are stored here, so they are served even if the backend cannot be reached.
            None => self
                .description_within_timeout()
                .await
                .is_none_or(|it| it.tasks),
        };
        if offered {
            Ok(())
        } else {
            Err(codes::method_not_found(method))
        }
    }

    /// Rejects a caller that has not declared the extension (V2-CAP-12), before any lookup.
    fn check_tasks_declared(&self) -> Result<(), ErrorObject> {
        if self.meta.tasks {
            Ok(())
        } else {
            Err(codes::missing_capability(
                format!("the request must declare the extension {}", v2::EXTENSION),
                v2::required_capability().borrow(),
            ))
        }
    }

    /// The caller as backends see it.
    fn client(&self) -> Arc<ClientHandle> {
        let mut client_info = ClientInfo::new(version::MODERN, self.meta.capabilities.clone());
        client_info.info = self.meta.info.clone();
        let owner = self.caller.owner().clone();
        Arc::new(ClientHandle::stateless(owner, client_info))
    }

    /// The description of the backend, unless it takes too long. Stored tasks do not wait for it.
    async fn description_within_timeout(&self) -> Option<BackendDescription> {
        let description = tokio::time::timeout(DESCRIBE_TIMEOUT, self.description()).await;
        description.ok()?.ok()
    }

    async fn description(&self) -> Result<BackendDescription, ErrorObject> {
        let description = self.server.describe(&self.client()).await?;
        let _ = self.server.modern.info.set(description.info.clone());
        let tasks = &self.server.modern.tasks;
        tasks.fetch_or(description.tasks, Ordering::Relaxed);
        Ok(description)
    }
}

/// How many notifications a slow reader may leave unread before the call waits for it.
const MAX_UNREAD_NOTIFICATIONS: usize = 64;

/// How long a backend may take to describe itself before the reply goes without its description.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Methods of older versions and of V1 tasks that do not exist in this era.
const REMOVED_METHODS: [&str; 7] = [
    v1::method::INITIALIZE,
    outlast_wire::method::PING,
    log::SET_LEVEL,
    outlast_wire::method::RESOURCES_SUBSCRIBE,
    outlast_wire::method::RESOURCES_UNSUBSCRIBE,
    v1::method::RESULT,
    v1::method::LIST,
];
