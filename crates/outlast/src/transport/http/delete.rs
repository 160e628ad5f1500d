//! DELETE: the client ends its session.

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::guard::McpHeaders;
use super::rejection::Rejection;
use super::response::{self, HttpResponse};
use super::server::Endpoint;
use crate::server::{Identity, Scopes, check};

impl Endpoint {
    pub(super) async fn delete(
        &self,
        caller: Identity,
        headers: &HeaderMap,
    ) -> Result<HttpResponse, Rejection> {
        // The end of a session cancels its tasks.
        check(caller.scopes(), Scopes::CANCEL)
            .map_err(|missing| Rejection::Scope(None, missing))?;
        McpHeaders::check_once(headers)?;
        let entry = self.session(&caller, McpHeaders::read(headers)).await?;
        self.sessions
            .end(&entry)
            .await
            .map_err(|error| Rejection::Unavailable(None, error.to_string()))?;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}
