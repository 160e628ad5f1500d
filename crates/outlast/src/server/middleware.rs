//! Middleware: user code that sees every request, and can change it, reply to it, or change its
//! reply.
//!
//! Typed filters for `tools/list` and the task methods are in `filters.rs`.
//!
//! The first middleware is the outermost. If a middleware does not call [`Next::run`], the request
//! goes no further. `tools/list` and each task method are requests like any other.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::Owner;
use outlast_wire::Raw;
use outlast_wire::envelope::{ErrorObject, write};
use tokio_util::sync::CancellationToken;

use super::audit::AuditedRequest;
use super::filters::{self, FilteredRequest, RequestError, TaskInfo, TaskList, ToolList};
use super::legacy::LegacyRequest;
use super::{HttpParts, ModernRequest, Scopes, check_request, denied};

/// Wraps every message of a client. A filter implements the methods that it needs; the others pass
/// the message on.
///
/// [`Middleware::request`] sees every request. The typed methods wrap one kind of request each, and
/// run inside of `request` of the same middleware.
///
/// ```
/// use async_trait::async_trait;
/// use outlast::prelude::*;
/// use outlast::server::{FilteredRequest, Middleware, RequestError, TaskInfo};
///
/// /// Hides status messages.
/// struct Discreet;
///
/// #[async_trait]
/// impl Middleware for Discreet {
///     async fn get_task(
///         &self,
///         request: FilteredRequest<'_, TaskInfo>,
///     ) -> Result<TaskInfo, RequestError> {
///         let mut task = request.run().await?;
///         task.set_status_message("");
///         Ok(task)
///     }
/// }
///
/// let server = Server::builder("quiet", "1.0").middleware(Discreet).build();
/// # drop(server);
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request, usually by a call of `next`.
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        next.run(request).await
    }

    /// Sees a notification before it is handled.
    fn notification(&self, method: &str, params: Option<&str>) {
        let _ = (method, params);
    }

    /// Wraps `tools/list`.
    async fn list_tools(
        &self,
        request: FilteredRequest<'_, ToolList>,
    ) -> Result<ToolList, RequestError> {
        request.run().await
    }

    /// Wraps `tasks/get`. The request has the task id; the result is the task.
    async fn get_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        request.run().await
    }

    /// Wraps `tasks/result`. The request has the task id; the result is the JSON of the outcome.
    async fn task_result(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        request.run().await
    }

    /// Wraps `tasks/cancel`. The request has the task id; the result is the task.
    async fn cancel_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        request.run().await
    }

    /// Wraps `tasks/update` of 2026-07-28. The request has the task id and the input responses; the
    /// result is an acknowledgement without members of its own.
    async fn update_task(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        request.run().await
    }

    /// Wraps `tasks/list`. The request has the cursor; the result is a page of tasks.
    async fn list_tasks(
        &self,
        request: FilteredRequest<'_, TaskList>,
    ) -> Result<TaskList, RequestError> {
        request.run().await
    }
}

#[async_trait]
impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        (**self).request(request, next).await
    }

    fn notification(&self, method: &str, params: Option<&str>) {
        (**self).notification(method, params);
    }

    async fn list_tools(
        &self,
        request: FilteredRequest<'_, ToolList>,
    ) -> Result<ToolList, RequestError> {
        (**self).list_tools(request).await
    }

    async fn get_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        (**self).get_task(request).await
    }

    async fn task_result(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        (**self).task_result(request).await
    }

    async fn cancel_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        (**self).cancel_task(request).await
    }

    async fn update_task(&self, request: FilteredRequest<'_, Raw>) -> Result<Raw, RequestError> {
        (**self).update_task(request).await
    }

    async fn list_tasks(
        &self,
        request: FilteredRequest<'_, TaskList>,
    ) -> Result<TaskList, RequestError> {
        (**self).list_tasks(request).await
    }
}

/// A request from a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IncomingRequest {
    /// The method.
    pub method: String,
    /// The params: an object, not parsed yet.
    pub params: Option<Raw>,
    /// The owner that the request acts for.
    pub owner: Owner,
    /// What the caller may do. The server refuses a request that needs another scope.
    pub scopes: Scopes,
    /// The head of the HTTP request, if the transport is HTTP.
    pub http: Option<Arc<HttpParts>>,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A result.
    Result(Raw),
    /// A JSON-RPC error object.
    Error(Raw),
    /// No reply: the request was cancelled.
    Nothing,
}

/// The rest of the chain: the typed filter of the same middleware, the inner middleware, then the
/// server.
pub struct Next<'a> {
    /// The middleware whose typed filter is next.
    typed: Option<&'a Arc<dyn Middleware>>,
    middleware: &'a [Arc<dyn Middleware>],
    handler: RequestHandler<'a>,
}

/// The end of the chain.
#[derive(Clone, Copy)]
pub(super) enum RequestHandler<'a> {
    /// A request of a legacy session.
    Legacy(LegacyRequest<'a>),
    /// A modern request, and its cancellation.
    Modern(&'a ModernRequest, &'a CancellationToken),
}

/// What a filter can do besides its reply: send messages, and see the cancellation.
#[derive(Clone, Copy)]
pub struct RequestContext<'a>(RequestHandler<'a>);

impl RequestContext<'_> {
    /// Sends a notification to the client before the reply, on the stream of the response (S3-30).
    /// It is dropped if the client accepts no stream.
    pub async fn notify(&self, method: &str, params: &Raw) {
        match self.0 {
            RequestHandler::Legacy(legacy) => {
                legacy
                    .stream
                    .send(write::notification(method, Some(params.borrow())));
            }
            RequestHandler::Modern(request, _) => {
                request.notifications.notify(method, params).await;
            }
        }
    }

    /// Whether the request was cancelled (S3-31).
    pub fn is_cancelled(&self) -> bool {
        self.token().is_cancelled()
    }

    /// Resolves when the client cancels the request, or disconnects in the modern era. The request
    /// is dropped then: a filter that has to clean up spawns a task that awaits this future.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.token().clone().cancelled_owned()
    }

    fn token(&self) -> &CancellationToken {
        match self.0 {
            RequestHandler::Legacy(legacy) => legacy.stream.cancelled(),
            RequestHandler::Modern(_, cancelled) => cancelled,
        }
    }
}

impl<'a> Next<'a> {
    pub(super) fn new(middleware: &'a [Arc<dyn Middleware>], handler: RequestHandler<'a>) -> Self {
        Self {
            typed: None,
            middleware,
            handler,
        }
    }

    /// Sends messages to the client, and sees the cancellation of the request.
    pub fn context(&self) -> RequestContext<'a> {
        RequestContext(self.handler)
    }

    /// Runs the rest of the chain.
    pub async fn run(self, request: IncomingRequest) -> Reply {
        if let Some(middleware) = self.typed {
            let next = Next {
                typed: None,
                ..self
            };
            // Boxed, because it calls this method again.
            return Box::pin(filters::run(&**middleware, request, next)).await;
        }
        match self.middleware.split_first() {
            Some((middleware, rest)) => {
                let next = Next {
                    typed: Some(middleware),
                    middleware: rest,
                    handler: self.handler,
                };
                middleware.request(request, next).await
            }
            None => {
                let audited = AuditedRequest::new(&request);
                let params = request.params.as_ref().map(Raw::borrow);
                let checked = check_request(request.scopes, &request.method, params);
                let reply = match (checked, self.handler) {
                    (Err(missing), _) => Reply::from(denied(missing)),
                    (Ok(()), RequestHandler::Legacy(legacy)) => legacy.dispatch(request).await,
                    (Ok(()), RequestHandler::Modern(modern, _)) => modern.handle(request).await,
                };
                audited.record(&reply);
                reply
            }
        }
    }
}

impl From<ErrorObject> for Reply {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error.to_raw())
    }
}
