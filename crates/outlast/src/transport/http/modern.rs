//! POST of a modern request: no session, headers that repeat the body, and a response by JSON or by
//! its own stream.
//!
//! The response owns the work of a request. If the caller closes the connection, both are dropped,
//! which is the cancellation (V2-HTTP-6).

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use outlast_wire::envelope::{self, ErrorObject, ErrorView, Message};
use outlast_wire::headers::{self, OnMissingName};
use outlast_wire::{Raw, RawRef, codes, v1};

use super::connection::InFlightGuard;
use super::guard::{AcceptedTypes, McpHeaders, PROTOCOL_VERSION, repeated};
use super::rejection::Rejection;
use super::response::HttpResponse;
use super::server::Endpoint;
use super::sse::StreamGuards;
use crate::server::{
    Caller, HttpParts, Identity, IncomingRequest, ModernRequest, NotificationSink, RequestMeta,
    is_modern_only, missing_meta,
};

/// The `_meta` of a modern request; `None` for a legacy message (V2-ERA-8, V2-ERA-13, A3-8).
pub(super) fn request_meta(
    message: &Message<'_>,
    mcp_headers: McpHeaders<'_>,
    in_session: bool,
) -> Result<Option<RequestMeta>, Rejection> {
    let Message::Request(request) = message else {
        return Ok(None);
    };
    let refused = |error| Rejection::Modern(request.id.clone(), error);
    match RequestMeta::read(request.params).map_err(refused)? {
        Some(meta) => Ok(Some(meta)),
        None if request.method == v1::method::INITIALIZE => Ok(None),
        None if mcp_headers.is_modern() => Err(refused(missing_meta())),
        None if !in_session && is_modern_only(&request.method) => Err(refused(missing_meta())),
        None => Ok(None),
    }
}

impl Endpoint {
    /// Answers a modern request.
    pub(super) async fn modern(
        &self,
        identity: Identity,
        request: envelope::Request<'_>,
        meta: RequestMeta,
        head: &Arc<HttpParts>,
        accepted: AcceptedTypes,
        in_flight: InFlightGuard,
    ) -> Result<HttpResponse, Rejection> {
        check_headers(
            &request,
            &meta,
            &head.headers,
            self.options.on_missing_task_name,
        )
        .map_err(|error| Rejection::Modern(request.id.clone(), error))?;
        let caller = match identity.owner() {
            Some(owner) => Caller::Principal(owner.clone()),
            None => in_flight.caller(),
        };
        let server = self.sessions.server();
        let hold = server
            .may_stream(&request.method)
            .then_some(self.options.stream_after);
        let incoming = IncomingRequest {
            method: request.method.into_owned(),
            params: request.params.map(RawRef::to_raw),
            owner: caller.owner().clone(),
            scopes: identity.scopes(),
            http: Some(head.clone()),
        };
        let phase = self.phase.clone();
        let request = ModernRequest {
            server: server.clone(),
            id: request.id,
            caller,
            meta,
            has_shared_tasks: self.nodes.is_some(),
            notifications: NotificationSink::Discard,
            closing: Box::new(move || Box::pin(super::server::closed(phase.clone()))),
        };
        let handling = request.handle_http(incoming, accepted.events);
        Ok(self
            .respond(
                handling,
                hold,
                accepted,
                status,
                StreamGuards::new(in_flight),
            )
            .await)
    }
}

/// Checks the headers that repeat the body, and that each is sent once (V2-HH-2, V2-HH-3,
/// V2-PARAM-5). A version mismatch is reported before an unsupported version.
fn check_headers(
    request: &envelope::Request<'_>,
    meta: &RequestMeta,
    all: &HeaderMap,
    on_missing: OnMissingName,
) -> Result<(), ErrorObject> {
    // Parsers disagree on which value of a repeated header counts.
    if let Some(name) = repeated(all, repeats_the_body) {
        let why = format!("header `{name}` is sent more than once");
        return Err(codes::header_mismatch(why));
    }
    let header = |name| {
        all.get::<HeaderName>(name)
            .and_then(|value| value.to_str().ok())
    };
    headers::check_version(meta.version(), header(PROTOCOL_VERSION))?;
    meta.check_version()?;
    headers::check_method(&request.method, header(METHOD))?;
    headers::check_name(&request.method, request.params, header(NAME), on_missing)
}

fn repeats_the_body(name: &HeaderName) -> bool {
    [PROTOCOL_VERSION, METHOD, NAME].contains(name) || name.as_str().starts_with(PARAM_PREFIX)
}

/// The status of an error (V2-CODE-4).
fn status(error: &Raw) -> StatusCode {
    match ErrorView::read(error.borrow()).map(|error| error.code) {
        Some(codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY | codes::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        Some(codes::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        // A2-30.
        _ => StatusCode::OK,
    }
}

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_match_the_wire_crate() {
        assert!(headers::METHOD.eq_ignore_ascii_case(METHOD.as_str()));
        assert!(headers::NAME.eq_ignore_ascii_case(NAME.as_str()));
        assert!(headers::PARAM_PREFIX.eq_ignore_ascii_case(PARAM_PREFIX));
    }

    #[test]
    fn only_some_errors_have_a_status() {
        // V2-CODE-4, A2-30.
        let status = |code| status(&ErrorObject::new(code, "").to_raw()).as_u16();
        assert_eq!([-32020, -32021, -32022].map(status), [400; 3]);
        assert_eq!([-32601, -32602, -32603].map(status), [404, 200, 200]);
    }
}
