//! A further service next to the MCP endpoints of a listener, such as a web console.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tower_service::Service;

use super::response::{HttpResponse, Payload};

/// A service for every path that is neither an endpoint nor a page of the listener, such as an
/// `axum::Router`.
///
/// The listener checks host, origin and request rate; the service authenticates its callers
/// itself. A request has the extension [`PeerAddress`](super::PeerAddress).
#[derive(Clone)]
pub struct Fallback(Arc<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>);

type ResponseFuture = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

impl Fallback {
    /// Serves with `service`.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
                let Ok(()) = ready;
                let Ok(response) = service.call(request).await;
                response.map(Payload::other)
            })
        }))
    }

    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> HttpResponse {
        (self.0)(request).await
    }
}

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fallback")
    }
}
