//! The general stream of a client (V1-SSE-7). It is open as long as the link, if the server has
//! one.

use std::convert::Infallible;
use std::sync::Arc;

use reqwest::StatusCode;
use tokio::sync::{mpsc, oneshot};

use super::Done;
use super::endpoint::Endpoint;
use super::events::Events;
use super::post::{ContentKind, pause};
use crate::transport::link::{Incoming, LinkError};

/// Reads the general stream until the session ends or the server does not offer it. `known` is
/// dropped as soon as the server has responded.
pub(super) async fn listen(
    endpoint: Arc<Endpoint>,
    tell: mpsc::Sender<Incoming>,
    known: oneshot::Sender<Infallible>,
) -> Done {
    let mut events = Events::new(endpoint.limit);
    let mut failures = 0;
    let mut known = Some(known);
    loop {
        let answer = endpoint.get(events.seen()).await;
        drop(known.take());
        match answer {
            Ok(mut answer)
                if answer.status().is_success()
                    && ContentKind::of(&answer) == ContentKind::Stream =>
            {
                failures += 1;
                events.reconnected();
                while let Ok(Some(bytes)) = answer.chunk().await {
                    failures = 0;
                    for line in events.take(&bytes) {
                        let message = Incoming::Message { line, via: None };
                        if tell.send(message).await.is_err() {
                            return Done::Fine;
                        }
                    }
                }
            }
            // V1-HTTP-8: the server has no general stream.
            Ok(answer) if answer.status() == StatusCode::METHOD_NOT_ALLOWED => return Done::Fine,
            Ok(answer) => match endpoint.refusal(answer).await {
                LinkError::SessionGone => return Done::Over(LinkError::SessionGone),
                error if !error.is_transient() => {
                    tracing::info!(
                        error = error.brief(),
                        "the server has no general stream"
                    );
                    return Done::Fine;
                }
                _ => failures += 1,
            },
            Err(LinkError::Redirected(_)) => return Done::Fine,
            Err(_) => failures += 1,
        }
        tokio::time::sleep(pause(&events, failures)).await;
    }
}
