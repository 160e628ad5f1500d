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

use super::response::{self, HttpResponse};

/// The response to a preflight request, which has no token.
pub(super) fn preflight(headers: &HeaderMap) -> HttpResponse {
    let mut response = response::empty(StatusCode::NO_CONTENT);
    let headers_out = response.headers_mut();
    headers_out.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    headers_out.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(headers));
    headers_out.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Adds the headers that let a page of an allowed origin read the response.
pub(super) fn allow_origin(response: &mut HttpResponse, origin: HeaderValue) {
    let headers = response.headers_mut();
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
    let requested = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|requested| requested.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let mirrored = requested
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
