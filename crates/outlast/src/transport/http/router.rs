//! Maps paths to endpoints, one for each MCP server, and to plain pages.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode};
use outlast_wire::envelope::{Limits, Message};

use super::bodies::UnfinishedBodies;
use super::connection::{Connections, InFlightGuard};
use super::cors;
use super::guard::{Guard, Identity, McpHeaders};
use super::options::HttpOptions;
use super::rate::RequestRate;
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
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
    pub(super) guard: Guard,
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    pub(super) pages: Option<Arc<dyn Pages>>,
    pub(super) connections: Connections,
    pub(super) bodies: Arc<UnfinishedBodies>,
    pub(super) rate: RequestRate,
    /// Further connections get health checks and 503.
    pub(super) max_connections: usize,
    pub(super) options: HttpOptions,
}

impl Router {
    /// Answers one request.
    pub(super) async fn answer(
        &self,
        head: &Arc<HttpParts>,
        body: &mut Incoming,
        in_flight: InFlightGuard,
    ) -> HttpResponse {
        let path = head.uri.path();
        let mut endpoints = self.endpoints.iter();
        let endpoint = endpoints.find(|endpoint| endpoint.path == path);
        if endpoint.is_none()
            && let Some(page) = Box::pin(self.page(head)).await
        {
            return page;
        }
        let routed = self.route(endpoint, head, body, in_flight).await;
        let mut answer = routed.unwrap_or_else(Rejection::answer);
        let origin = head.headers.get(ORIGIN);
        if let Some(origin) = origin.filter(|origin| self.guard.is_allowed_origin(origin)) {
            cors::allow_origin(&mut answer, origin.clone());
        }
        answer
    }

    async fn route(
        &self,
        endpoint: Option<&Arc<Endpoint>>,
        head: &Arc<HttpParts>,
        body: &mut Incoming,
        in_flight: InFlightGuard,
    ) -> Result<HttpResponse, Rejection> {
        let headers = &head.headers;
        // A browser sends its preflight request without the token of the page.
        let admitted = if head.method == Method::OPTIONS {
            self.guard
                .admit_host_and_origin(&head.uri, headers)
                .map(|()| None)
        } else {
            self.guard.admit(&head.uri, headers).map(Some)
        };
        let visitor = in_flight.caller();
        self.rate.admit(match &admitted {
            Ok(Some(Identity(Some(principal)))) => principal,
            _ => visitor.owner(),
        })?;
        let caller = admitted?;
        // Only an admitted caller can find out which paths exist.
        let endpoint = endpoint.ok_or(Rejection::Path)?;
        let Some(caller) = caller else {
            return Ok(cors::preflight(headers));
        };
        match head.method {
            Method::POST => endpoint.post(caller, head, body, in_flight).await,
            // V2-HTTP-7.
            _ if McpHeaders::read(headers).is_modern() => Err(Rejection::Method(MODERN_METHODS)),
            // Boxed: most requests are POSTs, and their future stays small.
            Method::GET => Box::pin(endpoint.get(caller, headers, in_flight)).await,
            Method::DELETE => Box::pin(endpoint.delete(caller, headers)).await,
            _ => Err(Rejection::Method(LEGACY_METHODS)),
        }
    }

    /// Answers one request on a rejected connection: health checks as usual, everything else by
    /// 503.
    pub(super) async fn reject(
        &self,
        head: &HttpParts,
        body: &mut Incoming,
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
        if let Err(refused) = self.guard.admit_host_and_origin(&head.uri, &head.headers) {
            return Some(refused.answer());
        }
        let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::OK);
        let mut answer = response::text(status, page.body);
        let content_type = HeaderValue::from_static(page.content_type);
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
        Some(answer)
    }
}

/// The HTTP methods for a modern client.
const MODERN_METHODS: &str = "POST, OPTIONS";

/// The HTTP methods for a legacy client.
const LEGACY_METHODS: &str = "GET, POST, DELETE, OPTIONS";

/// The maximum size of a request on a rejected connection.
const MAX_REJECTED_BODY_BYTES: usize = 64 << 10;
