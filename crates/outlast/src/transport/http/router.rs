//! Maps paths to endpoints, one for each MCP server, and to plain pages.

use std::pin::{Pin, pin};
use std::sync::Arc;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use outlast_wire::envelope::{Limits, Message};

use super::bodies::UnfinishedBodies;
use super::connection::{Connections, InFlightGuard};
use super::options::HttpOptions;
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::service::{Admission, HttpService};
use crate::server::HttpParts;

/// Serves plain GETs next to the endpoints and the health checks, such as metrics. They need no
/// token.
#[async_trait]
pub trait Pages: Send + Sync + 'static {
    /// The page at `path`, if there is one.
    async fn page(&self, path: &str) -> Option<Page>;
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The HTTP status.
    pub status: u16,
    /// The content type.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// Everything that an HTTP server serves.
pub(super) struct Router {
    pub(super) admission: Arc<Admission>,
    pub(super) endpoints: Vec<HttpService>,
    pub(super) pages: Option<Arc<dyn Pages>>,
    pub(super) connections: Connections,
    pub(super) bodies: Arc<UnfinishedBodies>,
    /// Further connections get health checks and 503.
    pub(super) max_connections: usize,
    pub(super) options: HttpOptions,
}

impl Router {
    /// Answers one request.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        in_flight: InFlightGuard,
    ) -> HttpResponse {
        let path = request.uri().path();
        let mut endpoints = self.endpoints.iter();
        if let Some(service) = endpoints.find(|service| service.endpoint.path == path) {
            let (head, body) = request.into_parts();
            // `Arc`: handlers share the head.
            return service.answer(&Arc::new(head), pin!(body), in_flight).await;
        }
        // Boxed: most requests are for an endpoint, and their future stays small.
        Box::pin(self.answer_other(request, in_flight)).await
    }

    /// Answers a request for a path without an endpoint.
    async fn answer_other(
        &self,
        request: Request<Incoming>,
        in_flight: InFlightGuard,
    ) -> HttpResponse {
        let (head, body) = request.into_parts();
        if let Some(page) = self.page(&head).await {
            return page;
        }
        let Some(fallback) = &self.options.fallback else {
            // Only an admitted caller can find out which paths exist.
            let admitted = self.admission.admit(&head, &in_flight).await;
            let answer = admitted.err().unwrap_or(Rejection::Path).answer();
            return self.admission.with_cors(&head, answer);
        };
        let checked = self
            .admission
            .guard
            .admit_host_and_origin(&head.uri, &head.headers);
        let rated = self.admission.rate.admit(in_flight.caller().owner());
        if let Err(rejected) = checked.and(rated) {
            return rejected.answer();
        }
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(in_flight.address());
        let answer = fallback.answer(request).await;
        answer.map(|payload| payload.with_guard(in_flight))
    }

    /// Answers one request on a rejected connection: health checks as usual, everything else by
    /// 503.
    pub(super) async fn reject(
        &self,
        head: &HttpParts,
        body: Pin<&mut Incoming>,
        why: String,
    ) -> HttpResponse {
        if let Some(page) = self.page(head).await {
            return page;
        }
        // A client that is still sending when the connection closes may not get the response.
        let body = self.bodies.collect(body, MAX_REJECTED_BODY_BYTES).await;
        let id = body
            .ok()
            .and_then(|bytes| match Message::parse(&bytes, &Limits::default()) {
                Ok(Message::Request(request)) => Some(request.id),
                _ => None,
            });
        Rejection::Unavailable(id, why).answer()
    }

    /// A health check, or another page.
    async fn page(&self, head: &HttpParts) -> Option<HttpResponse> {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let path = head.uri.path();
        let page = match (self.health(path).await, &self.pages) {
            (Some(page), _) => page,
            (None, Some(pages)) => pages.page(path).await?,
            (None, None) => return None,
        };
        // DNS rebinding: a page of another host gets no information.
        if let Err(refused) = self
            .admission
            .guard
            .admit_host_and_origin(&head.uri, &head.headers)
        {
            return Some(refused.answer());
        }
        let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::OK);
        let mut answer = response::text(status, page.body);
        let content_type = HeaderValue::from_static(page.content_type);
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
        Some(answer)
    }
}

/// The maximum size of a request on a rejected connection.
const MAX_REJECTED_BODY_BYTES: usize = 64 << 10;
