//! DELETE: the client ends its session.

use bytes::Bytes;
use hyper::StatusCode;

use super::guard::McpHeaders;
use super::home::{AdmittedRequest, Routed};
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
use crate::server::{Scopes, check};

impl Endpoint {
    pub(super) async fn delete(
        &self,
        request: AdmittedRequest<'_>,
    ) -> Result<HttpResponse, Rejection> {
        // The end of a session cancels its tasks.
        check(request.caller.scopes(), Scopes::CANCEL)
            .map_err(|missing| Rejection::Scope(None, missing))?;
        McpHeaders::check_once(&request.head.headers)?;
        let entry = match self.session_or_forward(&request, &Bytes::new()).await? {
            Routed::Here(entry) => entry,
            Routed::Answered(response) => return Ok(response),
        };
        self.sessions
            .end(&entry)
            .await
            .map_err(|error| Rejection::Unavailable(None, error.to_string()))?;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}
