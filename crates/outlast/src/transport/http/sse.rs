//! Writes a stream of messages as server-sent events.
//!
//! On a stream that can be resumed every event has an id: server process, stream and position
//! (V1-RESUME-1, V1-RESUME-2). Every process numbers its streams from one, so the id contains the
//! process. Events of a modern request have no id (V2-HTTP-7).

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use outlast_wire::version;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

use super::connection::InFlightGuard;
use crate::server::{MessageStream, Session, StreamId, StreamMessage, StreamPermit};

/// Identifies one run of a server in event ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerEpoch(pub(super) u64);

/// The last event that a client received: a stream and a position on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: StreamId,
    pub(super) position: u64,
}

/// The guards of an open stream.
pub(super) struct StreamGuards {
    _permit: Option<StreamPermit>,
    _in_flight: InFlightGuard,
}

/// A stream of events for a client.
pub(super) struct EventStream {
    epoch: ServerEpoch,
    messages: MessageStream,
    /// The bytes that open the stream, until they are sent.
    opening: Option<Bytes>,
    /// The interval of keep-alive comments, and its timer once the stream is read.
    keep_alive: Duration,
    tick: Option<Interval>,
    /// Whether the client supports an event without data, which only sets the event id.
    primes: bool,
    ended: bool,
    /// The first of these to resolve closes the connection.
    closing: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _open: StreamGuards,
}

impl StreamGuards {
    /// The guards of a modern request.
    pub(super) fn new(in_flight: InFlightGuard) -> Self {
        Self {
            _permit: None,
            _in_flight: in_flight,
        }
    }

    /// The guards of a request of a session, whose streams are limited.
    pub(super) fn of_session(permit: StreamPermit, in_flight: InFlightGuard) -> Self {
        Self {
            _permit: Some(permit),
            _in_flight: in_flight,
        }
    }
}

impl EventStream {
    /// The events of `messages` after the position `seen`, with a comment every `keep_alive`.
    pub(super) fn new(
        epoch: ServerEpoch,
        messages: MessageStream,
        seen: u64,
        keep_alive: Duration,
        open: StreamGuards,
    ) -> Self {
        let first = match &messages {
            MessageStream::Session(session, attached) if supports_prime_events(session) => {
                Some(EventId {
                    stream: attached.stream,
                    position: seen,
                })
            }
            MessageStream::Session(..) | MessageStream::Request(_) => None,
        };
        let mut events = Self {
            epoch,
            messages,
            opening: None,
            keep_alive,
            tick: None,
            primes: first.is_some(),
            ended: false,
            closing: Vec::new(),
            _open: open,
        };
        events.opening = Some(match first {
            Some(first) => events.prime(first),
            None => Bytes::from_static(COMMENT),
        });
        events
    }

    /// Ends the stream when `closing` resolves.
    pub(super) fn until(mut self, closing: impl Future<Output = ()> + Send + 'static) -> Self {
        self.closing.push(Box::pin(closing));
        self
    }

    /// Ends the stream after `longest`, if the client can resume it (V1-SSE-2).
    pub(super) fn for_at_most(self, longest: Duration) -> Self {
        if self.primes {
            self.until(sleep(longest))
        } else {
            self
        }
    }

    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = self.messages.poll_next(cx);
        match (next, self.opening.take()) {
            (Poll::Ready(Some(message)), opening) => {
                self.ended = message.last;
                Poll::Ready(Some(self.event(&message, opening)))
            }
            // Cancelled, resumed on another connection, or closed because the client is too slow.
            (Poll::Ready(None), opening) => {
                self.ended = true;
                Poll::Ready(opening)
            }
            (Poll::Pending, Some(opening)) => Poll::Ready(Some(opening)),
            (Poll::Pending, None) => self.poll_idle(cx),
        }
    }

    /// Waits for the end of the stream, and for the next comment.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut closing = self.closing.iter_mut();
        if closing.any(|closing| closing.as_mut().poll(cx).is_ready()) {
            self.ended = true;
            return Poll::Ready(None);
        }
        let keep_alive = self.keep_alive;
        let tick = self.tick.get_or_insert_with(|| {
            let mut tick = interval_at(Instant::now() + keep_alive, keep_alive);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tick
        });
        tick.poll_tick(cx)
            .map(|_| Some(Bytes::from_static(COMMENT)))
    }

    /// An event without data: it sets the event id and the reconnection delay (V1-SSE-1, V1-SSE-2).
    fn prime(&self, seen: EventId) -> Bytes {
        if !self.primes {
            return Bytes::from_static(COMMENT);
        }
        let mut text = String::with_capacity(80);
        self.write_id(&mut text, seen);
        text.push_str("retry: 1000\ndata:\n\n");
        text.into()
    }

    /// A message as an event, after `opening` if the stream is not open yet.
    fn event(&self, message: &StreamMessage, opening: Option<Bytes>) -> Bytes {
        let seen = message
            .position
            .map(|(stream, position)| EventId { stream, position });
        let Some(line) = &message.line else {
            // This event replaces the opening.
            return seen.map_or(Bytes::from_static(COMMENT), |seen| self.prime(seen));
        };
        // Only a client that can resume needs an opening before the first event.
        let opening = opening.filter(|_| seen.is_some()).unwrap_or_default();
        let mut text = String::with_capacity(opening.len() + line.len() + 112);
        text.push_str(std::str::from_utf8(&opening).unwrap_or_default());
        if let Some(seen) = seen {
            self.write_id(&mut text, seen);
        }
        text.push_str("event: message\ndata: ");
        text.push_str(line);
        text.push_str("\n\n");
        text.into()
    }

    fn write_id(&self, text: &mut String, seen: EventId) {
        let _ = writeln!(text, "id: {}", seen.written(self.epoch));
    }
}

impl EventId {
    /// Parses `Last-Event-ID`, if it is from this run of the server.
    pub(super) fn read(text: &str, epoch: ServerEpoch) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (of, stream, position) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || u64::from_str_radix(of, 16) != Ok(epoch.0) {
            return None;
        }
        Some(Self {
            stream: StreamId(stream.parse().ok()?),
            position: position.parse().ok()?,
        })
    }

    fn written(self, epoch: ServerEpoch) -> impl std::fmt::Display {
        struct Written(ServerEpoch, EventId);
        impl std::fmt::Display for Written {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:x}-{}-{}", self.0.0, self.1.stream, self.1.position)
            }
        }
        Written(epoch, self)
    }
}

/// Clients of older versions treat an event without data as a malformed message.
fn supports_prime_events(session: &Session) -> bool {
    session
        .client_info()
        .is_some_and(|peer| peer.version == version::LEGACY)
}

const COMMENT: &[u8] = b":\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_valid_in_one_run_only() {
        let seen = EventId {
            stream: StreamId(3),
            position: 17,
        };
        let text = seen.written(ServerEpoch(0xabc)).to_string();
        assert_eq!(EventId::read(&text, ServerEpoch(0xabc)), Some(seen));
        assert_eq!(EventId::read(&text, ServerEpoch(0xabd)), None);
        for strange in ["", "-", "abc-3", "abc-3-17-1", "abc-x-1", "3-17", "é"] {
            assert_eq!(
                EventId::read(strange, ServerEpoch(0xabc)),
                None,
                "{strange}"
            );
        }
    }
}
