//! The bodies of an HTTP response: nothing, one JSON text, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::sse::EventStream;

pub(super) type HttpResponse = Response<Payload>;

/// The body of a response.
pub(super) enum Payload {
    /// A text, until it is sent.
    Text(Option<Bytes>),
    /// A stream.
    Events(Box<EventStream>),
}

/// 202: accepted, without a body (V1-HTTP-6).
pub(super) fn accepted() -> HttpResponse {
    empty(StatusCode::ACCEPTED)
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    with_status(status, Payload::Text(None))
}

/// One message as JSON.
pub(super) fn json(line: Arc<str>) -> HttpResponse {
    text_of(StatusCode::OK, Bytes::from_owner(Line(line)))
}

/// One message as JSON, with a status.
pub(super) fn text(status: StatusCode, line: String) -> HttpResponse {
    text_of(status, line.into())
}

/// A stream of events.
pub(super) fn events(events: EventStream) -> HttpResponse {
    let mut response = with_status(StatusCode::OK, Payload::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Asks proxies not to buffer events.
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Events(events) => events
                .poll_bytes(cx)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

fn text_of(status: StatusCode, bytes: Bytes) -> HttpResponse {
    let mut response = with_status(status, Payload::Text(Some(bytes)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn with_status(status: StatusCode, payload: Payload) -> HttpResponse {
    let mut response = Response::new(payload);
    *response.status_mut() = status;
    response
}

/// A line whose bytes are sent without being copied.
struct Line(Arc<str>);

impl AsRef<[u8]> for Line {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
