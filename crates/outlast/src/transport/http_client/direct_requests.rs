//! Requests that the waiting task sends and reads itself, without a spawned task and a queue. If
//! another message precedes the response, the rest of the stream goes through the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_engine::Backoff;
use outlast_wire::envelope::Id;
use tokio::sync::{Notify, SetOnce, mpsc};

use super::endpoint::Endpoint;
use super::post;
use crate::transport::link::{Incoming, MessageKind, OutgoingMessage, TransportError};

/// Sends requests of one link.
pub(crate) struct DirectRequests {
    endpoint: Arc<Endpoint>,
    incoming_sender: mpsc::Sender<Incoming>,
    /// Set when the handshake is complete. Earlier requests are sent in order.
    opened: SetOnce<()>,
    in_flight: AtomicUsize,
    /// Notified when a request has ended.
    done: Notify,
    /// Notified when the server no longer knows the session.
    session_gone: Notify,
}

/// Counts a request as in flight.
struct InFlight<'a>(&'a DirectRequests);

impl DirectRequests {
    pub(super) fn new(endpoint: Arc<Endpoint>, incoming_sender: mpsc::Sender<Incoming>) -> Self {
        Self {
            endpoint,
            incoming_sender,
            opened: SetOnce::new(),
            in_flight: AtomicUsize::new(0),
            done: Notify::new(),
            session_gone: Notify::new(),
        }
    }

    /// Marks the handshake as complete.
    pub(super) fn open(&self) {
        // It is set already if the stream for the server's messages opens again.
        let _ = self.opened.set(());
    }

    /// A text of the server with the session id removed.
    pub(crate) fn without_session(&self, text: &str) -> String {
        self.endpoint.without_session(text)
    }

    /// Resolves when the server has rejected a request because it does not know the session.
    pub(super) async fn session_gone(&self) {
        self.session_gone.notified().await;
    }

    /// Resolves when no request is in flight.
    pub(super) async fn idle(&self) {
        loop {
            let done = self.done.notified();
            let mut done = std::pin::pin!(done);
            done.as_mut().enable();
            if self.in_flight.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }

    /// Whether a message can be sent by [`DirectRequests::request`] now.
    pub(crate) fn can_send(&self, kind: &MessageKind) -> bool {
        match kind {
            MessageKind::Stateless(_) => true,
            MessageKind::Request(_) => self.is_open(),
            MessageKind::Opening(_) | MessageKind::OneWay => false,
        }
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        self.opened.initialized()
    }

    /// Resolves when the handshake is complete.
    pub(crate) async fn opened(&self) {
        self.opened.wait().await;
    }

    /// Sends a message without a response and waits until the server has accepted it. A transient
    /// error is retried, because an input response that arrives twice is ignored.
    pub(crate) async fn deliver(&self, message: &OutgoingMessage) -> Result<(), TransportError> {
        let mut backoff = Backoff::new(MIN_RETRY_DELAY, MAX_RETRY_DELAY);
        let mut attempts = 1;
        loop {
            match post::send_one_way(&self.endpoint, message).await {
                Err(error @ TransportError::SessionGone) => {
                    self.session_gone.notify_one();
                    return Err(error);
                }
                Err(error) if error.is_transient() && attempts < MAX_ATTEMPTS => {
                    tracing::info!(
                        error = error.brief(),
                        "retrying a message without a response"
                    );
                    let requested_delay = match error {
                        TransportError::Refused { retry_after, .. } => retry_after,
                        _ => None,
                    };
                    tokio::time::sleep(backoff.delay_of_at_least(requested_delay)).await;
                    attempts += 1;
                }
                delivered => return delivered,
            }
        }
    }

    /// Sends the request `id` and waits for its response, which `read` recognises. Returns `None`
    /// if the response or the error goes through the queue of the link instead. This happens if
    /// other messages precede the response, or if the session is gone.
    pub(crate) async fn request<A>(
        &self,
        message: &OutgoingMessage,
        id: &Id,
        read: impl Fn(&[u8]) -> Option<A>,
    ) -> Result<Option<A>, TransportError> {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        let _in_flight = InFlight(self);
        match post::send_request(&self.endpoint, message, id, &self.incoming_sender, read).await {
            Err(error @ TransportError::SessionGone) => {
                let id = id.clone();
                let _ = self
                    .incoming_sender
                    .send(Incoming::Failed { id, error })
                    .await;
                self.session_gone.notify_one();
                Ok(None)
            }
            answered => answered,
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.0.done.notify_waiters();
    }
}

impl std::fmt::Debug for DirectRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectRequests").finish_non_exhaustive()
    }
}

/// The maximum of attempts for a message without a response.
const MAX_ATTEMPTS: u32 = 10;

/// Delays between the attempts.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
