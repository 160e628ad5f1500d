//! Pages in a browser: what the browser must be told so that a page that may call us can.
//!
//! Whether a page may is the [`Guard`](super::guard::Guard)'s decision (V1-HTTP-2); here is only how the browser
//! learns of it. There are no cookies here, so credentials are never allowed.

use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderValue, VARY,
};

use super::answer::{self, Answer};

/// The answer to a browser that asks what a page may send. It asks without the page's token.
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

/// Lets the page at `origin`, which may call, read an answer.
pub(super) fn let_read(answer: &mut Answer, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate"),
    );
    // Whoever keeps answers must not give this one to another page.
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Those that MCP has, and of those that mirror parameters the ones that are asked for.
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
    // What came as a header can go as one.
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
