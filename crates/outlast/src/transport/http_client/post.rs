//! One message to the server, and its response: nothing, JSON, or a stream that can be resumed.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::{self, ErrorView, Id, Message};
use outlast_wire::{Raw, RawRef, object};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::sync::mpsc;

use super::Done;
use super::endpoint::{Endpoint, read_whole, retry_after};
use super::events::Events;
use crate::transport::link::{Incoming, Kind, LinkError, Parcel, passed_on};

/// Sends `parcel` and forwards all messages of the response.
pub(super) async fn deliver(
    endpoint: Arc<Endpoint>,
    parcel: Parcel,
    tell: mpsc::Sender<Incoming>,
) -> Done {
    let request = parcel.request().cloned();
    let error = match &request {
        // The response is forwarded through `tell`.
        Some(id) => ask(&endpoint, &parcel, id, &tell, |_| None::<()>)
            .await
            .err(),
        None => hand_over(&endpoint, &parcel).await.err(),
    };
    let Some(error) = error else {
        return Done::Fine;
    };
    if let Some(id) = request {
        let error = error.clone();
        let _ = tell.send(Incoming::Failed { id, error }).await;
    } else if error != LinkError::SessionGone {
        tracing::warn!(error = error.brief(), "could not send a message");
    }
    match error {
        LinkError::SessionGone => Done::Over(error),
        _ => Done::Fine,
    }
}

/// Sends a message without a response. A timeout counts as success, because the server has the
/// message.
pub(super) async fn hand_over(endpoint: &Endpoint, parcel: &Parcel) -> Result<(), LinkError> {
    let handing_over = async {
        let answer = endpoint.post(parcel).await?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(endpoint.refusal(answer).await)
        }
    };
    let handed_over = tokio::time::timeout(endpoint.accept, handing_over).await;
    handed_over.unwrap_or(Ok(()))
}

/// Sends a request. Returns its response if it is the first message and `read` recognises it;
/// otherwise all messages are forwarded to `tell`.
pub(super) async fn ask<A>(
    endpoint: &Endpoint,
    parcel: &Parcel,
    id: &Id,
    tell: &mpsc::Sender<Incoming>,
    read: impl Fn(&[u8]) -> Option<A>,
) -> Result<Option<A>, LinkError> {
    let answer = endpoint.post(parcel).await?;
    let kind = ContentKind::of(&answer);
    if !answer.status().is_success() {
        return refused(endpoint, answer, kind, id, tell)
            .await
            .map(|()| None);
    }
    if matches!(parcel.kind, Kind::Opening(_)) {
        endpoint.opened_by(&answer);
    }
    match kind {
        ContentKind::Stream => {
            let resumes = !matches!(parcel.kind, Kind::Stateless(_));
            stream(endpoint, answer, id, tell, resumes, read).await
        }
        ContentKind::Json => {
            let body = read_whole(answer, endpoint.limit).await?;
            if let Some(answer) = read(&body) {
                return Ok(Some(answer));
            }
            if answers(&body, id) {
                pass_on(tell, body, id).await.map(|()| None)
            } else {
                Err(LinkError::Broken(
                    "the body is not the response to the request".into(),
                ))
            }
        }
        ContentKind::Other => Err(LinkError::Broken(
            "the content type is neither JSON nor an event stream".into(),
        )),
    }
}

/// Handles an HTTP error status. A JSON-RPC response in the body counts, whatever the status
/// (A2-30). A server that is overloaded has not acted on the request, so status and `Retry-After`
/// count, too (A2-29).
async fn refused(
    endpoint: &Endpoint,
    answer: Response,
    kind: ContentKind,
    id: &Id,
    tell: &mpsc::Sender<Incoming>,
) -> Result<(), LinkError> {
    let status = answer.status();
    let session_gone = status == StatusCode::NOT_FOUND && endpoint.has_session();
    if kind != ContentKind::Json || session_gone {
        return Err(endpoint.refusal(answer).await);
    }
    let retry_after = retry_after(&answer);
    let body = read_whole(answer, endpoint.limit).await?;
    let is_overloaded = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let is_answer = answers(&body, id);
    if is_answer && !is_overloaded {
        return pass_on(tell, body, id).await;
    }
    let text = endpoint.without_session(&String::from_utf8_lossy(&body));
    Err(LinkError::Refused {
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
    mut answer: Response,
    id: &Id,
    tell: &mpsc::Sender<Incoming>,
    resumes: bool,
    read: impl Fn(&[u8]) -> Option<A>,
) -> Result<Option<A>, LinkError> {
    let mut events = Events::new(endpoint.limit);
    let mut failures = 0;
    let mut is_first = true;
    loop {
        let mut heard = Heard::Nothing;
        events.reconnected();
        while let Ok(Some(bytes)) = answer.chunk().await {
            for line in events.take(&bytes) {
                heard = Heard::Something;
                if std::mem::take(&mut is_first)
                    && let Some(read) = read(&line)
                {
                    end(answer).await;
                    return Ok(Some(read));
                }
                let last = answers(&line, id);
                if pass_on(tell, line, id).await.is_err() {
                    return Ok(None);
                }
                if last {
                    end(answer).await;
                    return Ok(None);
                }
            }
            if let Some(error) = events.too_large() {
                // It may have been the response, so do not wait for another one.
                return Err(error);
            }
        }
        match heard {
            Heard::Something => failures = 0,
            Heard::Nothing => failures += 1,
        }
        if !resumes || events.seen().is_none() || failures > RESUMES {
            return Err(LinkError::Broken(
                "the stream ended before the response".into(),
            ));
        }
        let resumed = resume(endpoint, &events, &mut failures).await;
        // BR-GEN-7: the server has accepted the request, so its outcome is unknown.
        answer = resumed.map_err(|error| LinkError::Broken(error.to_string()))?;
    }
}

/// Reconnects to a stream.
async fn resume(
    endpoint: &Endpoint,
    events: &Events,
    failures: &mut u32,
) -> Result<Response, LinkError> {
    loop {
        tokio::time::sleep(pause(events, *failures)).await;
        let error = match endpoint.get(events.seen()).await {
            Ok(answer) if answer.status().is_success() => return Ok(answer),
            Ok(answer) => endpoint.refusal(answer).await,
            Err(error) => error,
        };
        *failures += 1;
        if !error.is_transient() || error == LinkError::SessionGone || *failures > RESUMES {
            return Err(error);
        }
    }
}

/// The reconnection delay: the value of the server, doubled after each failure.
pub(super) fn pause(events: &Events, failures: u32) -> Duration {
    let told = events.retry().unwrap_or(RETRY).min(LONGEST);
    told.saturating_mul(1 << failures.min(6))
        .min(LONGEST)
        .max(told)
}

enum Heard {
    Something,
    Nothing,
}

/// Reads a stream to its end after the response, so that the connection can be reused.
async fn end(mut answer: Response) {
    let mut rest = Box::pin(async move { while let Ok(Some(_)) = answer.chunk().await {} });
    tokio::select! {
        biased;
        () = &mut rest => {}
        // The response does not wait for the end of the stream.
        () = std::future::ready(()) => drop(tokio::spawn(tokio::time::timeout(REST, rest))),
    }
}

async fn pass_on(tell: &mpsc::Sender<Incoming>, line: Vec<u8>, id: &Id) -> Result<(), LinkError> {
    let via = Some(id.clone());
    let told = tell.send(Incoming::Message { line, via }).await;
    told.map_err(|_| LinkError::Closed)
}

/// Whether `line` is the response to the request `id`. A malformed message with that id counts,
/// because nothing else will follow.
fn answers(line: &[u8], id: &Id) -> bool {
    match Message::parse(line, &passed_on()) {
        Ok(Message::Response(response)) => response.id.as_ref() == Some(id),
        Ok(_) => false,
        Err(malformed) => malformed.id.as_ref() == Some(id),
    }
}

/// The JSON-RPC error in a body.
fn error_in(body: &[u8]) -> Option<Raw> {
    match Message::parse(body, &passed_on()) {
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
    pub(super) fn of(answer: &Response) -> Self {
        let header = answer.headers().get(CONTENT_TYPE);
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
const RETRY: Duration = Duration::from_secs(1);

/// The longest reconnection delay.
const LONGEST: Duration = Duration::from_secs(30);

/// The maximum of consecutive connections without an event.
const RESUMES: u32 = 8;

/// How long to wait for the end of a stream after the response.
const REST: Duration = Duration::from_millis(250);

/// How many characters of a rejection are part of the error.
const MAX_EXPLANATION_CHARS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::explanation;

    #[test]
    fn a_refusal_is_explained_by_its_error_message_or_its_text() {
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
