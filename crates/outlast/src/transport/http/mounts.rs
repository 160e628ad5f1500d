//! What a server has at which path: endpoints, one for each front, and plain pages beside them.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};

use super::answer::{self, Answer};
use super::connection::{Busy, Connections};
use super::options::HttpOptions;
use super::refused::Refused;
use super::server::Endpoint;
use crate::front::HttpParts;

/// Answers plain GETs beside the endpoints, such as whether the server is well. They need no token.
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
    /// What sort of text it is.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// Everything that a server has.
pub(super) struct Mounts {
    /// At least one.
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    pub(super) pages: Option<Arc<dyn Pages>>,
    pub(super) connections: Connections,
    pub(super) options: HttpOptions,
}

impl Mounts {
    /// Answers one request, in whatever way.
    pub(super) async fn answer(
        &self,
        head: &Arc<HttpParts>,
        body: &mut Incoming,
        busy: Busy,
    ) -> Answer {
        let path = head.uri.path();
        let there = |endpoint: &&Arc<Endpoint>| endpoint.options.path == path;
        let found = self.endpoints.iter().find(there);
        if found.is_none()
            && let Some(page) = Box::pin(self.page(head)).await
        {
            return page;
        }
        match found.or_else(|| self.endpoints.first()) {
            // One at another path says so, to those who may come in.
            Some(endpoint) => endpoint.answer(head, body, busy).await,
            None => Refused::Path.answer(),
        }
    }

    async fn page(&self, head: &HttpParts) -> Option<Answer> {
        let (pages, endpoint) = (self.pages.as_ref()?, self.endpoints.first()?);
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let page = pages.page(head.uri.path()).await?;
        // A page whose name was bent to this address learns nothing.
        if let Err(refused) = endpoint.guard.admit_place(&head.uri, &head.headers) {
            return Some(refused.answer());
        }
        let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::OK);
        let mut answer = answer::text(status, page.body);
        let content_type = HeaderValue::from_static(page.content_type);
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
        Some(answer)
    }
}
