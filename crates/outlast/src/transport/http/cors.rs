//! CORS: lets a browser page call the server if its origin is allowed.
//!
//! The [`Guard`](super::guard::Guard) decides whether an origin is allowed (V1-HTTP-2); this module
//! sends the headers. There are no cookies, so credentials are never allowed.

use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderValue, VARY,
};

use super::answer::{self, Answer};

/// The response to a preflight request, which has no token.
pub(super) fn preflight(headers: &HeaderMap) -> Answer {
    let mut answer = answer::empty(StatusCode::NO_CONTENT);
    let told = answer.headers_mut();
    told.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    told.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(headers));
    told.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

/// Adds the headers that let a page of an allowed origin read the response.
pub(super) fn let_read(answer: &mut Answer, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate"),
    );
    // A cache must not give this response to another origin.
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The headers of MCP, and the requested headers that mirror parameters.
fn allowed_headers(headers: &HeaderMap) -> HeaderValue {
    let asked = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|asked| asked.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let mirrored = asked
        .split(',')
        .map(str::trim)
        .filter(|name| name.starts_with("mcp-param-"));
    let all: Vec<_> = HEADERS.into_iter().chain(mirrored).collect();
    // The names come from a header value, so they are valid in one.
    HeaderValue::from_str(&all.join(", "))
        .unwrap_or_else(|_| HeaderValue::from_static("content-type"))
}

const HEADERS: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
