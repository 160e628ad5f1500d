//! The streams of one session: every message goes onto exactly one of them (V1-SSE-10).
//!
//! A stream outlives its connection for a while: what was sent is kept, bounded, and a client that comes
//! back with the number of the last event it saw gets the rest (V1-RESUME-3). Event ids name stream and
//! place, so they are unique within the session (V1-RESUME-1, V1-RESUME-2).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// The streams of one session.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Streams>);

/// One stream of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(crate) u64);

/// Something on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    /// The stream and the place on it.
    pub(crate) event: (StreamId, u64),
    /// The message, on one line; none where the stream only has to be opened.
    pub(crate) line: Option<Arc<str>>,
    /// Whether nothing follows.
    pub(crate) last: bool,
}

/// A connection to a stream.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The stream.
    pub(crate) stream: StreamId,
    /// What is sent on it from here on, after what was kept.
    pub(crate) receiver: mpsc::Receiver<Out>,
}

#[derive(Debug, Default)]
struct Streams {
    next: u64,
    streams: BTreeMap<StreamId, Stream>,
    /// How many bytes are kept on all streams.
    bytes: usize,
}

#[derive(Debug)]
struct Stream {
    kind: Kind,
    next: u64,
    kept: VecDeque<Out>,
    bytes: usize,
    live: Option<mpsc::Sender<Out>>,
    ended: bool,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The client listens in general.
    General,
    /// There is only this one, for everything; it never ends by an answer.
    Pipe,
    /// The answer to one request.
    Answer,
}

impl Board {
    /// Opens a stream that somebody is attached to.
    pub(crate) fn open(&self, kind: Kind) -> Attached {
        let mut streams = self.lock();
        streams.next += 1;
        let id = StreamId(streams.next);
        let (live, receiver) = mpsc::channel(if kind == Kind::Pipe { PIPE_LAG } else { LAG });
        let stream = Stream {
            kind,
            next: 1,
            kept: VecDeque::new(),
            bytes: 0,
            live: Some(live),
            ended: false,
        };
        streams.streams.insert(id, stream);
        streams.forget_oldest();
        Attached {
            stream: id,
            receiver,
        }
    }

    /// Attaches to a stream again, after the event that was seen last.
    pub(crate) fn resume(&self, id: StreamId, seen: u64) -> Option<Attached> {
        let mut streams = self.lock();
        let stream = streams.streams.get_mut(&id)?;
        // Where a client listens in general, a gap is told by a fresh stream; the rest of an answer is worth having
        // in any case.
        if stream.kind == Kind::General && stream.first_kept() > seen.saturating_add(1) {
            return None;
        }
        let (live, receiver) = mpsc::channel(LAG + KEPT);
        for out in stream.kept.iter().filter(|out| out.event.1 > seen) {
            // The channel is larger than what is kept.
            let _ = live.try_send(out.clone());
        }
        stream.live = (!stream.ended).then_some(live);
        Some(Attached {
            stream: id,
            receiver,
        })
    }

    /// Sends `line` on a stream. Kept if nobody is attached.
    pub(crate) fn send(&self, id: StreamId, line: impl Into<Arc<str>>) {
        self.put(id, Some(line.into()), false);
    }

    /// Sends the last line of a stream.
    pub(crate) fn finish(&self, id: StreamId, line: impl Into<Arc<str>>) {
        self.put(id, Some(line.into()), true);
    }

    /// Lets a stream be opened without a message: its first one may take long.
    pub(crate) fn prime(&self, id: StreamId) {
        self.put(id, None, false);
    }

    /// Ends a stream without another message. A pipe goes on.
    pub(crate) fn end(&self, id: StreamId) {
        let mut streams = self.lock();
        if streams
            .streams
            .get(&id)
            .is_some_and(|stream| stream.kind != Kind::Pipe)
        {
            streams.remove(id);
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        let mut streams = self.lock();
        streams.streams.clear();
        streams.bytes = 0;
    }

    /// Whether somebody is attached.
    pub(crate) fn is_live(&self, id: StreamId) -> bool {
        self.lock().streams.get(&id).is_some_and(Stream::is_live)
    }

    /// A stream on which the client listens in general, if there is one: the newest.
    pub(crate) fn general(&self) -> Option<StreamId> {
        let streams = self.lock();
        let mut general = streams.streams.iter().rev();
        general
            .find(|(_, stream)| stream.kind != Kind::Answer && stream.is_live())
            .map(|(id, _)| *id)
    }

    /// The stream on which the client listened in general last: what is sent there waits until it comes back.
    pub(crate) fn last_general(&self) -> Option<StreamId> {
        let streams = self.lock();
        let mut general = streams.streams.iter().rev();
        general
            .find(|(_, stream)| stream.kind != Kind::Answer)
            .map(|(id, _)| *id)
    }

    fn put(&self, id: StreamId, line: Option<Arc<str>>, last: bool) {
        let mut streams = self.lock();
        let Some(stream) = streams.streams.get_mut(&id) else {
            return;
        };
        let last = last && stream.kind != Kind::Pipe;
        let out = Out {
            event: (id, stream.next),
            line,
            last,
        };
        stream.next += 1;
        stream.ended |= last;
        // One who does not keep up is cut off, and may come back for what is kept.
        let delivered = stream
            .live
            .as_ref()
            .is_some_and(|live| live.try_send(out.clone()).is_ok());
        if !delivered || stream.ended {
            stream.live = None;
        }
        if stream.kind != Kind::Pipe {
            let before = stream.bytes;
            stream.keep(out);
            streams.bytes = streams.bytes + streams.bytes_of(id) - before;
            streams.forget_bytes(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock()
    }
}

impl Streams {
    /// Keeps the number of streams bounded: the oldest that nobody is attached to go first.
    fn forget_oldest(&mut self) {
        while self.streams.len() > STREAMS {
            let oldest = self
                .streams
                .iter()
                .find(|(_, stream)| !stream.is_live())
                .map(|(id, _)| *id);
            let Some(oldest) = oldest else { return };
            self.remove(oldest);
        }
    }

    /// Keeps the bytes of all streams bounded: what was sent longest ago on another stream than `id` goes first.
    fn forget_bytes(&mut self, id: StreamId) {
        while self.bytes > SESSION_BYTES {
            let oldest = self
                .streams
                .iter_mut()
                .find(|(of, stream)| **of != id && stream.bytes > 0);
            let Some((_, stream)) = oldest else { return };
            self.bytes -= stream.bytes;
            stream.kept.clear();
            stream.bytes = 0;
        }
    }

    fn remove(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            self.bytes -= stream.bytes;
        }
    }

    fn bytes_of(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |stream| stream.bytes)
    }
}

impl Stream {
    fn is_live(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.is_closed())
    }

    /// The number of the first event that is kept, or of the next one where none is.
    fn first_kept(&self) -> u64 {
        self.kept.front().map_or(self.next, |out| out.event.1)
    }

    fn keep(&mut self, out: Out) {
        self.bytes += out.line.as_ref().map_or(0, |line| line.len());
        self.kept.push_back(out);
        while self.kept.len() > KEPT || self.bytes > KEPT_BYTES && self.kept.len() > 1 {
            let Some(dropped) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= dropped.line.map_or(0, |line| line.len());
        }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How many messages a slow client may be behind.
const LAG: usize = 1_024;

/// The same for a pipe, which cannot be opened again.
const PIPE_LAG: usize = 1 << 20;

/// How many messages of a stream are kept for a client that comes back.
const KEPT: usize = 256;

/// How many bytes of a stream are kept.
const KEPT_BYTES: usize = 1 << 20;

/// How many bytes of all streams of a session are kept.
const SESSION_BYTES: usize = 4 << 20;

/// How many streams of a session are remembered.
const STREAMS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(attached: &mut Attached) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        while let Ok(out) = attached.receiver.try_recv() {
            lines.push((
                out.event.1,
                out.line.as_deref().unwrap_or_default().to_owned(),
            ));
        }
        lines
    }

    #[test]
    fn a_message_goes_onto_exactly_one_stream() {
        let board = Board::default();
        let mut one = board.open(Kind::General);
        let mut two = board.open(Kind::General);
        board.send(board.general().unwrap(), "x");
        assert_eq!(lines(&mut one).len() + lines(&mut two).len(), 1);
    }

    #[test]
    fn a_client_that_comes_back_gets_what_it_missed_of_its_own_stream() {
        // V1-RESUME-3.
        let board = Board::default();
        let mut mine = board.open(Kind::General);
        let other = board.open(Kind::Answer);
        board.send(mine.stream, "a");
        board.send(other.stream, "not mine");
        assert_eq!(lines(&mut mine), [(1, "a".into())]);
        let stream = mine.stream;
        drop(mine);
        assert_eq!(board.general(), None);
        board.send(stream, "b");
        board.send(stream, "c");
        let mut again = board.resume(stream, 1).unwrap();
        assert_eq!(lines(&mut again), [(2, "b".into()), (3, "c".into())]);
        board.send(stream, "d");
        assert_eq!(lines(&mut again), [(4, "d".into())]);
        assert_eq!(board.resume(StreamId(77), 0).map(drop), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let board = Board::default();
        let stream = board.open(Kind::General).stream;
        for _ in 0..1_000 {
            board.send(stream, "x".repeat(10_000));
        }
        // A gap is not passed over.
        assert!(board.resume(stream, 0).is_none());
        let kept = KEPT_BYTES as u64 / 10_000;
        let mut again = board.resume(stream, 1_000 - kept).unwrap();
        assert_eq!(lines(&mut again).len() as u64, kept);
        for _ in 0..1_000 {
            drop(board.open(Kind::Answer));
        }
        assert!(board.lock().streams.len() <= STREAMS + 1);
    }

    #[test]
    fn what_is_kept_of_all_streams_together_is_bounded() {
        let board = Board::default();
        let mut streams = Vec::new();
        for _ in 0..50 {
            let stream = board.open(Kind::Answer).stream;
            board.send(stream, "x".repeat(900_000));
            board.finish(stream, "last");
            streams.push(stream);
        }
        let kept = |stream| lines(&mut board.resume(stream, 0).unwrap()).len();
        assert_eq!(kept(streams[0]), 0);
        assert_eq!(kept(streams[49]), 2);
        let sum = |streams: &Streams| {
            let sizes = streams.streams.values().map(|stream| stream.bytes);
            sizes.sum::<usize>()
        };
        let bytes = board.lock().bytes;
        assert!(
            bytes <= SESSION_BYTES && bytes == sum(&board.lock()),
            "{bytes}"
        );
        for stream in streams {
            board.end(stream);
        }
        assert_eq!(board.lock().bytes, 0);
    }
}
