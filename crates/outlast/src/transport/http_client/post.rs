//! One message to the server, and its response: nothing, JSON, or a stream that can be resumed.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::{self, ErrorView, Id, Message};
use outlast_wire::{Raw, RawRef, object};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::sync::mpsc;

use super::WorkResult;
use super::endpoint::{Endpoint, read_whole, retry_after};
use super::event_parser::EventParser;
use crate::transport::link::{
    Incoming, MessageKind, OutgoingMessage, TransportError, limits_without_size,
};

/// Sends `message` and forwards all messages of the response.
pub(super) async fn deliver(
    endpoint: Arc<Endpoint>,
    message: OutgoingMessage,
    incoming_sender: mpsc::Sender<Incoming>,
) -> WorkResult {
    let request = message.request().cloned();
    let error = match &request {
        // The response is forwarded through `incoming_sender`.
        Some(id) => send_request(&endpoint, &message, id, &incoming_sender, |_| None::<()>)
            .await
            .err(),
        None => send_one_way(&endpoint, &message).await.err(),
    };
    let Some(error) = error else {
        return WorkResult::Continue;
    };
    if let Some(id) = request {
        let error = error.clone();
        let _ = incoming_sender.send(Incoming::Failed { id, error }).await;
    } else if error != TransportError::SessionGone {
        tracing::warn!(error = error.brief(), "could not send a message");
    }
    match error {
        TransportError::SessionGone => WorkResult::Ended(error),
        _ => WorkResult::Continue,
    }
}

/// Sends a message without a response. A timeout counts as success, because the server has the
/// message.
pub(super) async fn send_one_way(
    endpoint: &Endpoint,
    message: &OutgoingMessage,
) -> Result<(), TransportError> {
    let sending = async {
        let response = endpoint.post(message).await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(endpoint.rejection(response).await)
        }
    };
    let sent = tokio::time::timeout(endpoint.accept, sending).await;
    sent.unwrap_or(Ok(()))
}

/// Sends a request. Returns its response if it is the first message and `read` recognises it;
/// otherwise all messages are forwarded to `incoming_sender`.
pub(super) async fn send_request<A>(
    endpoint: &Endpoint,
    message: &OutgoingMessage,
    id: &Id,
    incoming_sender: &mpsc::Sender<Incoming>,
    read: impl Fn(&[u8]) -> Option<A>,
) -> Result<Option<A>, TransportError> {
    let response = endpoint.post(message).await?;
    let kind = ContentKind::of(&response);
    if !response.status().is_success() {
        return refused(endpoint, response, kind, id, incoming_sender)
            .await
            .map(|()| None);
    }
    if matches!(message.kind, MessageKind::Opening(_)) {
        endpoint.store_session(&response);
    }
    match kind {
        ContentKind::Stream => {
            let resumes = !matches!(message.kind, MessageKind::Stateless(_));
            stream(endpoint, response, id, incoming_sender, resumes, read).await
        }
        ContentKind::Json => {
            let body = read_whole(response, endpoint.limit).await?;
            if let Some(response) = read(&body) {
                return Ok(Some(response));
            }
            if is_response_to(&body, id) {
                forward(incoming_sender, body, id).await.map(|()| None)
            } else {
                Err(TransportError::Broken(
                    "the body is not the response to the request".into(),
                ))
            }
        }
        ContentKind::Other => Err(TransportError::Broken(
            "the content type is neither JSON nor an event stream".into(),
        )),
    }
}

/// Handles an HTTP error status. A JSON-RPC response in the body counts, whatever the status
/// (A2-30). A server that is overloaded has not acted on the request, so status and `Retry-After`
/// count, too (A2-29).
async fn refused(
    endpoint: &Endpoint,
    response: Response,
    kind: ContentKind,
    id: &Id,
    incoming_sender: &mpsc::Sender<Incoming>,
) -> Result<(), TransportError> {
    let status = response.status();
    let session_gone = status == StatusCode::NOT_FOUND && endpoint.has_session();
    if kind != ContentKind::Json || session_gone {
        return Err(endpoint.rejection(response).await);
    }
    let retry_after = retry_after(&response);
    let body = read_whole(response, endpoint.limit).await?;
    let is_overloaded = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let is_answer = is_response_to(&body, id);
    if is_answer && !is_overloaded {
        return forward(incoming_sender, body, id).await;
    }
    let text = endpoint.without_session(&String::from_utf8_lossy(&body));
    Err(TransportError::Refused {
        status: status.as_u16(),
        detail: explanation(&text),
        retry_after,
        error: is_answer.then(|| error_in(text.as_bytes())).flatten(),
    })
}

/// Reads the stream of a response to its end. It is resumed on new connections (V1-SSE-2, V1-SSE-3)
/// unless it is stateless (V2-HTTP-8).
async fn stream<A>(
    endpoint: &Endpoint,
    mut response: Response,
    id: &Id,
    incoming_sender: &mpsc::Sender<Incoming>,
    resumes: bool,
    read: impl Fn(&[u8]) -> Option<A>,
) -> Result<Option<A>, TransportError> {
    let mut events = EventParser::new(endpoint.limit);
    let mut failures = 0;
    let mut is_first = true;
    loop {
        let mut received = false;
        events.reconnected();
        while let Ok(Some(bytes)) = response.chunk().await {
            for line in events.parse(&bytes) {
                received = true;
                if std::mem::take(&mut is_first)
                    && let Some(read) = read(&line)
                {
                    end(response).await;
                    return Ok(Some(read));
                }
                let last = is_response_to(&line, id);
                if forward(incoming_sender, line, id).await.is_err() {
                    return Ok(None);
                }
                if last {
                    end(response).await;
                    return Ok(None);
                }
            }
            if let Some(error) = events.too_large() {
                // It may have been the response, so do not wait for another one.
                return Err(error);
            }
        }
        if received {
            failures = 0;
        } else {
            failures += 1;
        }
        if !resumes || events.last_event_id().is_none() || failures > MAX_EMPTY_CONNECTIONS {
            return Err(TransportError::Broken(
                "the stream ended before the response".into(),
            ));
        }
        let resumed = resume(endpoint, &events, &mut failures).await;
        // BR-GEN-7: the server has accepted the request, so its outcome is unknown.
        response = resumed.map_err(|error| TransportError::Broken(error.to_string()))?;
    }
}

/// Reconnects to a stream.
async fn resume(
    endpoint: &Endpoint,
    events: &EventParser,
    failures: &mut u32,
) -> Result<Response, TransportError> {
    loop {
        tokio::time::sleep(reconnect_delay(events, *failures)).await;
        let error = match endpoint.get(events.last_event_id()).await {
            Ok(response) if response.status().is_success() => return Ok(response),
            Ok(response) => endpoint.rejection(response).await,
            Err(error) => error,
        };
        *failures += 1;
        if !error.is_transient()
            || error == TransportError::SessionGone
            || *failures > MAX_EMPTY_CONNECTIONS
        {
            return Err(error);
        }
    }
}

/// The reconnection delay: the value of the server, doubled after each failure.
pub(super) fn reconnect_delay(events: &EventParser, failures: u32) -> Duration {
    let delay = events
        .retry()
        .unwrap_or(DEFAULT_RECONNECT_DELAY)
        .min(MAX_RECONNECT_DELAY);
    delay
        .saturating_mul(1 << failures.min(6))
        .min(MAX_RECONNECT_DELAY)
        .max(delay)
}

/// Reads a stream to its end after the response, so that the connection can be reused.
async fn end(mut response: Response) {
    let mut rest = Box::pin(async move { while let Ok(Some(_)) = response.chunk().await {} });
    tokio::select! {
        biased;
        () = &mut rest => {}
        // The response does not wait for the end of the stream.
        () = std::future::ready(()) => drop(tokio::spawn(tokio::time::timeout(STREAM_END_TIMEOUT, rest))),
    }
}

async fn forward(
    incoming_sender: &mpsc::Sender<Incoming>,
    line: Vec<u8>,
    id: &Id,
) -> Result<(), TransportError> {
    let via = Some(id.clone());
    let delay = incoming_sender.send(Incoming::Message { line, via }).await;
    delay.map_err(|_| TransportError::Closed)
}

/// Whether `line` is the response to the request `id`. A malformed message with that id counts,
/// because nothing else will follow.
fn is_response_to(line: &[u8], id: &Id) -> bool {
    match Message::parse(line, &limits_without_size()) {
        Ok(Message::Response(response)) => response.id.as_ref() == Some(id),
        Ok(_) => false,
        Err(malformed) => malformed.id.as_ref() == Some(id),
    }
}

/// The JSON-RPC error in a body.
fn error_in(body: &[u8]) -> Option<Raw> {
    match Message::parse(body, &limits_without_size()) {
        Ok(Message::Response(response)) => match response.outcome {
            envelope::Outcome::Error(error) => Some(error.raw.to_raw()),
            envelope::Outcome::Result(_) => None,
        },
        _ => None,
    }
}

/// Why a server refused a request, from the body of its response: the message of the JSON-RPC error
/// if there is one, else the beginning of the text.
pub(super) fn explanation(body: &str) -> String {
    let body = body.trim();
    let message = RawRef::parse(body).ok().and_then(|body| {
        let [error] = object::pick(body, ["error"]).ok()?;
        Some(ErrorView::read(error?)?.message.into_owned())
    });
    let text = message.as_deref().unwrap_or(body);
    text.chars().take(MAX_EXPLANATION_CHARS).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Json,
    Stream,
    Other,
}

impl ContentKind {
    pub(super) fn of(response: &Response) -> Self {
        let header = response.headers().get(CONTENT_TYPE);
        let text = header.and_then(|value| value.to_str().ok()).unwrap_or("");
        let essence = text.split(';').next().unwrap_or("").trim();
        if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Stream
        } else if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// The default reconnection delay.
const DEFAULT_RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The longest reconnection delay.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(30);

/// The maximum of consecutive connections without an event.
const MAX_EMPTY_CONNECTIONS: u32 = 8;

/// How long to wait for the end of a stream after the response.
const STREAM_END_TIMEOUT: Duration = Duration::from_millis(250);

/// How many characters of a rejection are part of the error.
const MAX_EXPLANATION_CHARS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn a_refusal_is_explained_by_error_message_or_text() {
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no \"such\" path"}}"#;
        for (body, expected) in [
            (error, "no \"such\" path"),
            (" Not Found\n", "Not Found"),
            (r#"{"detail":"gone"}"#, r#"{"detail":"gone"}"#),
            ("", ""),
        ] {
            assert_eq!(explanation(body), expected);
        }
        assert_eq!(explanation(&"x".repeat(5_000)).len(), 1_000);
    }
}
