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
use super::fallback::Fallback;
use super::home::{self, AdmittedRequest};
use super::nodes::{ForwardedRequest, Home, HomeKey, Pass};
use super::options::HttpOptions;
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::closed;
use super::service::{Admission, HttpService};
use crate::server::{HttpParts, Identity};

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
        let request = match self.forward_page(fallback, head, body, &in_flight).await {
            Ok(request) => request,
            Err(answer) => {
                let closing = self.closing();
                return answer.map(|payload| payload.until(in_flight, closing));
            }
        };
        answer_by(fallback, request, in_flight).await
    }

    /// Answers a request that another node has admitted.
    pub(super) async fn answer_forwarded(
        &self,
        request: Request<Incoming>,
        pass: Pass,
        in_flight: InFlightGuard,
    ) -> HttpResponse {
        let path = request.uri().path();
        let mut endpoints = self.endpoints.iter();
        if let Some(service) = endpoints.find(|service| service.endpoint.path == path) {
            let (head, body) = request.into_parts();
            let head = Arc::new(head);
            let request = AdmittedRequest {
                caller: pass.identity,
                head: &head,
                in_flight,
                is_forwarded: true,
            };
            return service.answer_forwarded(request, pin!(body)).await;
        }
        match &self.options.fallback {
            Some(fallback) => answer_by(fallback, request, in_flight).await,
            None => Rejection::Path.answer(),
        }
    }

    /// Forwards a request for another page to the node that has its home; returns the request if
    /// that is this node.
    async fn forward_page(
        &self,
        fallback: &Fallback,
        head: HttpParts,
        body: Incoming,
        in_flight: &InFlightGuard,
    ) -> Result<Request<Incoming>, HttpResponse> {
        let nodes = self.endpoints.first();
        let nodes = nodes.and_then(|service| service.endpoint.nodes.as_ref());
        let Some(nodes) = nodes else {
            return Ok(Request::from_parts(head, body));
        };
        let Some(name) = fallback.home(&head.headers).await else {
            return Ok(Request::from_parts(head, body));
        };
        let key = HomeKey::page(&name);
        let node = match nodes.claim(&key).await {
            Ok(Home::Here) => return Ok(Request::from_parts(head, body)),
            Ok(Home::At(node)) => node,
            Err(error) => return Err(Rejection::Unavailable(None, error.to_string()).answer()),
        };
        let bytes = self
            .bodies
            .collect(pin!(body), Limits::default().bytes)
            .await
            .map_err(Rejection::answer)?;
        let forwarded = ForwardedRequest {
            head: &head,
            body: bytes,
            pass: Pass {
                identity: Identity::anonymous(),
                address: in_flight.address().0,
            },
        };
        Err(match nodes.forward(&node, &forwarded).await {
            Ok(response) => home::relay(response),
            Err(failed) => {
                nodes.forget(&key);
                home::not_forwarded(None, failed).answer()
            }
        })
    }

    /// Resolves when the server closes.
    fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        let phase = self.endpoints.first();
        let phase = phase.map(|service| service.endpoint.phase.clone());
        async move {
            match phase {
                Some(phase) => closed(phase).await,
                None => std::future::pending().await,
            }
        }
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

async fn answer_by(
    fallback: &Fallback,
    mut request: Request<Incoming>,
    in_flight: InFlightGuard,
) -> HttpResponse {
    request.extensions_mut().insert(in_flight.address());
    let answer = fallback.answer(request).await;
    answer.map(|payload| payload.with_guard(in_flight))
}

/// The maximum size of a request on a rejected connection.
const MAX_REJECTED_BODY_BYTES: usize = 64 << 10;
