//! A further service next to the MCP endpoints of a listener, such as a web console.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{HeaderMap, Request, Response};
use tower_service::Service;

use super::response::{HttpResponse, Payload};

/// A service for every path that is neither an endpoint nor a page of the listener, such as an
/// `axum::Router`.
///
/// The listener checks host, origin and request rate; the service authenticates its callers
/// itself. A request has the extension [`PeerAddress`](super::PeerAddress).
#[derive(Clone)]
pub struct Fallback {
    service: Arc<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>,
    /// `None`: every node answers every request.
    home: Option<HomeName>,
}

/// Names what must stay at one node, such as the workspace of a browser.
type HomeName = Arc<dyn Fn(&HeaderMap) -> NameFuture + Send + Sync>;

type NameFuture = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

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
        let service = Arc::new(move |request| -> ResponseFuture {
            let mut service = service.clone();
            Box::pin(async move {
                let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
                let Ok(()) = ready;
                let Ok(response) = service.call(request).await;
                response.map(Payload::other)
            })
        });
        Self {
            service,
            home: None,
        }
    }

    /// Sends requests for which `name` returns the same name to the same node, if several nodes
    /// share a store and [`HttpOptions::nodes`](super::HttpOptions::nodes) is set. Each name is
    /// stored, so `name` must return `None` for a caller that is not known.
    #[must_use]
    pub fn with_home<N>(mut self, name: impl Fn(&HeaderMap) -> N + Send + Sync + 'static) -> Self
    where
        N: Future<Output = Option<String>> + Send + 'static,
    {
        self.home = Some(Arc::new(move |headers| Box::pin(name(headers))));
        self
    }

    /// What must stay at one node.
    pub(super) async fn home(&self, headers: &HeaderMap) -> Option<String> {
        (self.home.as_ref()?)(headers).await
    }

    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> HttpResponse {
        (self.service)(request).await
    }
}

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fallback")
    }
}
