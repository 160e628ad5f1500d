//! The baseline of the HTTP benchmarks: an endpoint that only parses the JSON-RPC envelope and
//! returns a constant response of 430 bytes.

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::BenchResult;

pub(super) async fn serve() -> BenchResult<()> {
    super::serve_router(Router::new().route("/mcp", post(response_to))).await
}

/// A message with unparsed params.
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

async fn response_to(body: Bytes) -> Response {
    match serde_json::from_slice::<Envelope<'_>>(&body) {
        Ok(message) => {
            std::hint::black_box((message.jsonrpc, message.id, message.method, message.params));
            ([(CONTENT_TYPE, "application/json")], REPLY).into_response()
        }
        // A notification has no `id`, so it does not parse as an `Envelope`. V1 clients send one
        // after `initialize`.
        Err(_) => StatusCode::ACCEPTED.into_response(),
    }
}

/// 430 bytes, like a task with its result.
const REPLY: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","#,
    r#""taskId":"01234567-89ab-cdef-0123-456789abcdef","status":"completed","#,
    r#""createdAt":"2026-01-01T00:00:00.000Z","lastUpdatedAt":"2026-01-01T00:00:00.000Z","#,
    r#""ttlMs":3600000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":""#,
    "0123456789012345678901234567890123456789012345678901234567890123456789",
    r#"01234567890123456789012345678901234567890123456789012345"}]}}}"#,
);
