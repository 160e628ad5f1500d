//! Middleware: user code that sees every request, and can change it, reply to it, or change its
//! reply.
//!
//! The first middleware is the outermost. If a middleware does not call [`Next::run`], the request
//! goes no further. `tools/list` and each task method are requests like any other.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::Owner;
use outlast_wire::Raw;
use outlast_wire::envelope::ErrorObject;

use super::audit::AuditedRequest;
use super::{HttpParts, ModernRequest, ResponseStream, Scopes, Session, check_request, denied};

/// Wraps every request.
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request, usually by a call of `next`.
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply;

    /// Sees a notification before it is handled.
    fn notification(&self, method: &str, params: Option<&str>) {
        let _ = (method, params);
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
}

/// A request from a client.
#[derive(Clone, Debug)]
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

/// The rest of the chain: the inner middleware, then the server.
pub struct Next<'a> {
    pub(super) middleware: &'a [Arc<dyn Middleware>],
    pub(super) handler: RequestHandler<'a>,
}

/// The end of the chain.
#[derive(Clone, Copy)]
pub(super) enum RequestHandler<'a> {
    /// A legacy session, and the stream of the response.
    Legacy(&'a Arc<Session>, &'a ResponseStream),
    /// A modern request.
    Modern(&'a ModernRequest),
}

impl Next<'_> {
    /// Runs the rest of the chain.
    pub async fn run(self, request: IncomingRequest) -> Reply {
        match self.middleware.split_first() {
            Some((middleware, rest)) => {
                let next = Next {
                    middleware: rest,
                    ..self
                };
                middleware.request(request, next).await
            }
            None => {
                let audited = AuditedRequest::new(&request);
                let params = request.params.as_ref().map(Raw::borrow);
                let checked = check_request(request.scopes, &request.method, params);
                let reply = match (checked, self.handler) {
                    (Err(missing), _) => Reply::from(denied(missing)),
                    (Ok(()), RequestHandler::Legacy(session, stream)) => {
                        session.dispatch(request, stream).await
                    }
                    (Ok(()), RequestHandler::Modern(modern)) => modern.handle(request).await,
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
