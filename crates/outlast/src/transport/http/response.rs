//! The bodies of an HTTP response: nothing, one JSON text, or a stream of events.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::connection::InFlightGuard;
use super::sse::EventStream;

/// A response of the HTTP server.
pub type HttpResponse = Response<Payload>;

/// The body of a response.
pub struct Payload(Content);

enum Content {
    /// A text, until it is sent.
    Text(Option<Bytes>),
    /// A stream.
    Events(Box<EventStream>),
    /// The body of another service, and the guard of its request.
    Other(OtherBody, Option<InFlightGuard>),
    /// The same, until the server closes.
    Interruptible(
        OtherBody,
        #[expect(dead_code, reason = "it is released with the body")] InFlightGuard,
        Closed,
    ),
}

type OtherBody = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// Resolves when the server closes.
type Closed = Pin<Box<dyn Future<Output = ()> + Send>>;

type BoxError = Box<dyn Error + Send + Sync>;

impl Payload {
    /// A text.
    pub(super) fn bytes(bytes: Bytes) -> Self {
        Self(Content::Text((!bytes.is_empty()).then_some(bytes)))
    }

    /// The body of another service.
    pub(super) fn other<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Content::Other(Box::pin(BoxedErrors(Box::pin(body))), None))
    }

    /// Keeps the connection active, and ends the body of another service when `closed` resolves.
    pub(super) fn until(
        self,
        guard: InFlightGuard,
        closed: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        match self.0 {
            Content::Other(body, _) => Self(Content::Interruptible(body, guard, Box::pin(closed))),
            content => Self(content),
        }
    }

    /// Keeps the connection active until the body of another service ends.
    pub(super) fn with_guard(mut self, guard: InFlightGuard) -> Self {
        if let Content::Other(_, slot) = &mut self.0 {
            *slot = Some(guard);
        }
        self
    }
}

/// 202: accepted, without a body (V1-HTTP-6).
pub(super) fn accepted() -> HttpResponse {
    empty(StatusCode::ACCEPTED)
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    with_status(status, Payload(Content::Text(None)))
}

/// One message as JSON.
pub(super) fn json(line: Arc<str>) -> HttpResponse {
    text_of(StatusCode::OK, Bytes::from_owner(LineBytes(line)))
}

/// One message as JSON, with a status.
pub(super) fn text(status: StatusCode, line: String) -> HttpResponse {
    text_of(status, line.into())
}

/// A stream of events.
pub(super) fn events(events: EventStream) -> HttpResponse {
    let mut response = with_status(StatusCode::OK, Payload(Content::Events(Box::new(events))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Asks proxies not to buffer events.
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

impl Body for Payload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Content::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Other(body, _) => body.as_mut().poll_frame(cx),
            Content::Interruptible(body, _, closed) => {
                if closed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                body.as_mut().poll_frame(cx)
            }
            Content::Events(events) => events
                .poll_bytes(cx)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Text(text) => text.is_none(),
            Content::Events(_) | Content::Interruptible(..) => false,
            Content::Other(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Content::Events(_) | Content::Interruptible(..) => SizeHint::default(),
            Content::Other(body, _) => body.size_hint(),
        }
    }
}

/// A body with boxed errors.
struct BoxedErrors<B>(Pin<Box<B>>);

impl<B> Body for BoxedErrors<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = self.0.as_mut().poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

fn text_of(status: StatusCode, bytes: Bytes) -> HttpResponse {
    let mut response = with_status(status, Payload(Content::Text(Some(bytes))));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn with_status(status: StatusCode, payload: Payload) -> HttpResponse {
    let mut response = Response::new(payload);
    *response.status_mut() = status;
    response
}

/// A line whose bytes are sent without being copied.
struct LineBytes(Arc<str>);

impl AsRef<[u8]> for LineBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
