//! The general stream of a client (V1-SSE-7). It is open as long as the link, if the server has
//! one.

use std::convert::Infallible;
use std::sync::Arc;

use reqwest::StatusCode;
use tokio::sync::{mpsc, oneshot};

use super::WorkResult;
use super::endpoint::Endpoint;
use super::event_parser::EventParser;
use super::post::{ContentKind, reconnect_delay};
use crate::transport::link::{Incoming, TransportError};

/// Reads the general stream until the session ends or the server does not offer it. `known` is
/// dropped as soon as the server has responded.
pub(super) async fn listen(
    endpoint: Arc<Endpoint>,
    incoming_sender: mpsc::Sender<Incoming>,
    known: oneshot::Sender<Infallible>,
) -> WorkResult {
    let mut events = EventParser::new(endpoint.limit);
    let mut failures = 0;
    let mut known = Some(known);
    loop {
        let response = endpoint.get(events.last_event_id()).await;
        drop(known.take());
        match response {
            Ok(mut response)
                if response.status().is_success()
                    && ContentKind::of(&response) == ContentKind::Stream =>
            {
                failures += 1;
                events.reconnected();
                while let Ok(Some(bytes)) = response.chunk().await {
                    failures = 0;
                    for line in events.parse(&bytes) {
                        let message = Incoming::Message { line, via: None };
                        if incoming_sender.send(message).await.is_err() {
                            return WorkResult::Continue;
                        }
                    }
                }
            }
            // V1-HTTP-8: the server has no general stream.
            Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
                return WorkResult::Continue;
            }
            Ok(response) => match endpoint.rejection(response).await {
                TransportError::SessionGone => {
                    return WorkResult::Ended(TransportError::SessionGone);
                }
                error if !error.is_transient() => {
                    tracing::info!(error = error.brief(), "the server has no general stream");
                    return WorkResult::Continue;
                }
                _ => failures += 1,
            },
            Err(TransportError::Redirected(_)) => return WorkResult::Continue,
            Err(_) => failures += 1,
        }
        tokio::time::sleep(reconnect_delay(&events, failures)).await;
    }
}
