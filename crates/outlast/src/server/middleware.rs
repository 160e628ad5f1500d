//! Filters: whoever runs a server can look at every request on its way, change it, answer it, or change
//! its answer.
//!
//! The first filter is the outermost. A filter that does not call [`Next::run`] keeps the request from
//! everything behind it. `tools/list` and each task method are requests like any other.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::Owner;
use outlast_wire::Raw;
use outlast_wire::envelope::ErrorObject;

use super::audit::AuditedRequest;
use super::{HttpParts, ModernRequest, ResponseStream, Session};

/// Stands around every request.
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request, usually by passing it on.
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply;

    /// Looks at a notification before it is handled.
    fn notification(&self, method: &str, params: Option<&str>) {
        let _ = (method, params);
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// What is asked for.
    pub method: String,
    /// An object, unopened.
    pub params: Option<Raw>,
    /// Whose request it is.
    pub owner: Owner,
    /// The head of the HTTP request, if it came by one.
    pub http: Option<Arc<HttpParts>>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This is the result.
    Result(Raw),
    /// This is the error object.
    Error(Raw),
    /// It is not answered.
    Nothing,
}

/// The way on from a filter: the filters behind it, then the server itself.
pub struct Next<'a> {
    pub(super) middleware: &'a [Arc<dyn Middleware>],
    pub(super) handler: RequestHandler<'a>,
}

/// The server itself.
#[derive(Clone, Copy)]
pub(super) enum RequestHandler<'a> {
    /// A session, and the stream of the response.
    Legacy(&'a Arc<Session>, &'a ResponseStream),
    /// A request that belongs to no session.
    Modern(&'a ModernRequest),
}

impl Next<'_> {
    /// Passes the request on.
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
                let reply = match self.handler {
                    RequestHandler::Legacy(session, stream) => {
                        session.dispatch(request, stream).await
                    }
                    RequestHandler::Modern(modern) => modern.handle(request).await,
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
