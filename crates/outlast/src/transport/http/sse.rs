//! A stream of a session as server-sent events.
//!
//! Every event has an id, so that a client can come back for what it missed: which life of the server, which
//! stream, which place (V1-RESUME-1, V1-RESUME-2). Streams are numbered anew in every life of the server,
//! hence the first part.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use outlast_wire::version;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

use super::connection::Busy;
use crate::front::{Attached, Out, Permit, Session, StreamId};

/// Names one life of a server in the ids of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life(pub(super) u64);

/// The last event that a client saw: a stream and a place on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stream: StreamId,
    pub(super) place: u64,
}

/// A stream on its way to a client.
pub(super) struct Events {
    life: Life,
    receiver: mpsc::Receiver<Out>,
    /// What goes out before anything is received.
    opening: Option<Bytes>,
    tick: Interval,
    primes: bool,
    ended: bool,
    /// Whatever of this comes first closes the connection.
    closing: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _open: (Permit, Busy),
    /// Whoever listens keeps the session.
    _session: Arc<Session>,
}

impl Events {
    /// The events of `attached` after `seen`, with a sign of life every `keep_alive`.
    pub(super) fn new(
        life: Life,
        session: &Arc<Session>,
        attached: Attached,
        seen: u64,
        keep_alive: Duration,
        open: (Permit, Busy),
    ) -> Self {
        let mut tick = interval_at(Instant::now() + keep_alive, keep_alive);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = Self {
            life,
            receiver: attached.receiver,
            opening: None,
            tick,
            primes: understands_primes(session),
            ended: false,
            closing: Vec::new(),
            _open: open,
            _session: session.clone(),
        };
        let seen = Seen {
            stream: attached.stream,
            place: seen,
        };
        events.opening = Some(events.opened(seen));
        events
    }

    /// The same, with `first` already received.
    pub(super) fn beginning_with(mut self, first: Out) -> Self {
        // The first event that is none but opens the stream stands for the opening.
        let first_bytes = self.event(&first);
        self.ended = first.last;
        self.opening = match (self.opening.take(), first.line) {
            (Some(opening), Some(_)) => Some([opening, first_bytes].concat().into()),
            _ => Some(first_bytes),
        };
        self
    }

    /// The same, until `closing` resolves.
    pub(super) fn until(mut self, closing: impl Future<Output = ()> + Send + 'static) -> Self {
        self.closing.push(Box::pin(closing));
        self
    }

    /// The same, for `longest` at most: then the client comes back for the rest, if it knows how (V1-SSE-2).
    pub(super) fn for_at_most(self, longest: Duration) -> Self {
        match self.primes {
            true => self.until(sleep(longest)),
            false => self,
        }
    }

    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(cx) {
            Poll::Ready(Some(out)) => {
                self.ended = out.last;
                return Poll::Ready(Some(self.event(&out)));
            }
            // Cancelled, taken over by another connection, or cut off for lagging behind.
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        let mut closing = self.closing.iter_mut();
        if closing.any(|closing| closing.as_mut().poll(cx).is_ready()) {
            self.ended = true;
            return Poll::Ready(None);
        }
        self.tick
            .poll_tick(cx)
            .map(|_| Some(Bytes::from_static(COMMENT)))
    }

    /// The first event: an id to come back with, no data, and how long to wait before that (V1-SSE-1,
    /// V1-SSE-2).
    fn opened(&self, seen: Seen) -> Bytes {
        if !self.primes {
            return Bytes::from_static(COMMENT);
        }
        let mut text = self.id_line(seen, 32);
        text.push_str("retry: 1000\ndata:\n\n");
        text.into()
    }

    fn event(&self, out: &Out) -> Bytes {
        let (stream, place) = out.event;
        let seen = Seen { stream, place };
        let Some(line) = &out.line else {
            return self.opened(seen);
        };
        let mut text = self.id_line(seen, line.len() + 64);
        text.push_str("event: message\ndata: ");
        text.push_str(line);
        text.push_str("\n\n");
        text.into()
    }

    fn id_line(&self, seen: Seen, room: usize) -> String {
        let mut text = String::with_capacity(room + 48);
        let _ = writeln!(text, "id: {}", seen.written(self.life));
        text
    }
}

impl Seen {
    /// Reads `Last-Event-ID`, if it is of this life of the server.
    pub(super) fn read(text: &str, life: Life) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (of, stream, place) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || u64::from_str_radix(of, 16) != Ok(life.0) {
            return None;
        }
        Some(Self {
            stream: StreamId(stream.parse().ok()?),
            place: place.parse().ok()?,
        })
    }

    fn written(self, life: Life) -> impl std::fmt::Display {
        struct Written(Life, Seen);
        impl std::fmt::Display for Written {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:x}-{}-{}", self.0.0, self.1.stream, self.1.place)
            }
        }
        Written(life, self)
    }
}

/// Clients of older versions take an event without data for a broken message.
fn understands_primes(session: &Session) -> bool {
    session
        .peer()
        .is_some_and(|peer| peer.version == version::LEGACY)
}

const COMMENT: &[u8] = b":\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_read_only_in_the_life_that_wrote_it() {
        let seen = Seen {
            stream: StreamId(3),
            place: 17,
        };
        let text = seen.written(Life(0xabc)).to_string();
        assert_eq!(Seen::read(&text, Life(0xabc)), Some(seen));
        assert_eq!(Seen::read(&text, Life(0xabd)), None);
        for strange in ["", "-", "abc-3", "abc-3-17-1", "abc-x-1", "3-17", "é"] {
            assert_eq!(Seen::read(strange, Life(0xabc)), None, "{strange}");
        }
    }
}
