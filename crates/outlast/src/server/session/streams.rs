//! The streams of one session: every message is sent on exactly one of them (V1-SSE-10).
//!
//! A stream outlives its connection: a bounded number of events is retained for replay, and a
//! client that returns with the id of its last event gets the rest (V1-RESUME-3). An event id names
//! stream and position, so it is unique within the session (V1-RESUME-1, V1-RESUME-2).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

/// The streams of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams(Mutex<Streams>);

/// The id of a stream within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(crate) u64);

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// The stream and the position on it.
    pub(crate) position: (StreamId, u64),
    /// The message on one line; `None` if the event only opens the stream.
    pub(crate) line: Option<Arc<str>>,
    /// Whether it is the last event.
    pub(crate) last: bool,
}

/// The reading end of a stream.
#[derive(Debug)]
pub(crate) struct StreamReader {
    /// The stream.
    pub(crate) stream: StreamId,
    /// Receives the replayed events, then the new ones.
    pub(crate) receiver: mpsc::Receiver<StreamEvent>,
}

#[derive(Debug, Default)]
struct Streams {
    /// The id of the newest stream.
    newest: u64,
    streams: BTreeMap<StreamId, Stream>,
    /// How many bytes are retained on all streams.
    bytes: usize,
}

#[derive(Debug)]
struct Stream {
    kind: StreamKind,
    /// The position of the next event.
    next_position: u64,
    replay: VecDeque<StreamEvent>,
    bytes: usize,
    sender: Option<mpsc::Sender<StreamEvent>>,
    ended: bool,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// Messages outside of a response, on HTTP.
    General,
    /// The only stream of a stdio session. A reply does not end it.
    Stdio,
    /// The response to one request.
    Response,
}

impl SessionStreams {
    /// Opens a stream with a reader.
    pub(crate) fn open(&self, kind: StreamKind) -> StreamReader {
        let mut streams = self.lock();
        streams.newest += 1;
        let id = StreamId(streams.newest);
        let (sender, receiver) = mpsc::channel(if kind == StreamKind::Stdio {
            MAX_UNREAD_STDIO_EVENTS
        } else {
            MAX_UNREAD_EVENTS
        });
        let stream = Stream {
            kind,
            next_position: 1,
            replay: VecDeque::new(),
            bytes: 0,
            sender: Some(sender),
            ended: false,
        };
        streams.streams.insert(id, stream);
        streams.drop_oldest();
        StreamReader {
            stream: id,
            receiver,
        }
    }

    /// Resumes a stream after the last event that the client received.
    pub(crate) fn resume(&self, id: StreamId, last_seen: u64) -> Option<StreamReader> {
        let mut streams = self.lock();
        let stream = streams.streams.get_mut(&id)?;
        // A gap on a general stream is reported by a new stream. The rest of a response is useful
        // even with a gap.
        if stream.kind == StreamKind::General
            && stream.first_replayable() > last_seen.saturating_add(1)
        {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_UNREAD_EVENTS + MAX_REPLAY_EVENTS);
        for event in stream
            .replay
            .iter()
            .filter(|event| event.position.1 > last_seen)
        {
            // The channel is larger than the replay buffer.
            let _ = sender.try_send(event.clone());
        }
        stream.sender = (!stream.ended).then_some(sender);
        Some(StreamReader {
            stream: id,
            receiver,
        })
    }

    /// Sends a message on a stream. It is retained if there is no reader.
    pub(crate) fn send(&self, id: StreamId, line: impl Into<Arc<str>>) {
        self.push(id, Some(line.into()), false);
    }

    /// Sends the last message of a stream.
    pub(crate) fn finish(&self, id: StreamId, line: impl Into<Arc<str>>) {
        self.push(id, Some(line.into()), true);
    }

    /// Opens a stream with an empty event, if its first message may take long.
    pub(crate) fn prime(&self, id: StreamId) {
        self.push(id, None, false);
    }

    /// Ends a stream without another message. The stdio stream stays open.
    pub(crate) fn end(&self, id: StreamId) {
        let mut streams = self.lock();
        if streams
            .streams
            .get(&id)
            .is_some_and(|stream| stream.kind != StreamKind::Stdio)
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

    /// Whether the stream has a reader.
    pub(crate) fn is_live(&self, id: StreamId) -> bool {
        self.lock().streams.get(&id).is_some_and(Stream::is_live)
    }

    /// The newest general stream with a reader, if there is one.
    pub(crate) fn general(&self) -> Option<StreamId> {
        let streams = self.lock();
        let mut general = streams.streams.iter().rev();
        general
            .find(|(_, stream)| stream.kind != StreamKind::Response && stream.is_live())
            .map(|(id, _)| *id)
    }

    /// The newest general stream, with or without a reader: the client may resume it.
    pub(crate) fn last_general(&self) -> Option<StreamId> {
        let streams = self.lock();
        let mut general = streams.streams.iter().rev();
        general
            .find(|(_, stream)| stream.kind != StreamKind::Response)
            .map(|(id, _)| *id)
    }

    fn push(&self, id: StreamId, line: Option<Arc<str>>, last: bool) {
        let mut streams = self.lock();
        let Some(stream) = streams.streams.get_mut(&id) else {
            return;
        };
        let last = last && stream.kind != StreamKind::Stdio;
        let event = StreamEvent {
            position: (id, stream.next_position),
            line,
            last,
        };
        stream.next_position += 1;
        stream.ended |= last;
        // A reader that is too slow is disconnected. The client may resume the stream.
        let delivered = stream
            .sender
            .as_ref()
            .is_some_and(|sender| sender.try_send(event.clone()).is_ok());
        if !delivered || stream.ended {
            stream.sender = None;
        }
        if stream.kind != StreamKind::Stdio {
            let before = stream.bytes;
            stream.retain(event);
            streams.bytes = streams.bytes + streams.bytes_of(id) - before;
            streams.drop_replay(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock()
    }
}

impl Streams {
    /// Limits the number of streams: removes the oldest without a reader.
    fn drop_oldest(&mut self) {
        while self.streams.len() > MAX_STREAMS {
            let oldest = self
                .streams
                .iter()
                .find(|(_, stream)| !stream.is_live())
                .map(|(id, _)| *id);
            let Some(oldest) = oldest else { return };
            self.remove(oldest);
        }
    }

    /// Limits the retained bytes of all streams: drops the replay buffer of the oldest stream other
    /// than `id`.
    fn drop_replay(&mut self, id: StreamId) {
        while self.bytes > MAX_SESSION_REPLAY_BYTES {
            let oldest = self
                .streams
                .iter_mut()
                .find(|(of, stream)| **of != id && stream.bytes > 0);
            let Some((_, stream)) = oldest else { return };
            self.bytes -= stream.bytes;
            stream.replay.clear();
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
        self.sender
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }

    /// The position of the first retained event, or of the next event if none is retained.
    fn first_replayable(&self) -> u64 {
        self.replay
            .front()
            .map_or(self.next_position, |event| event.position.1)
    }

    fn retain(&mut self, event: StreamEvent) {
        self.bytes += event.line.as_ref().map_or(0, |line| line.len());
        self.replay.push_back(event);
        while self.replay.len() > MAX_REPLAY_EVENTS
            || self.bytes > MAX_REPLAY_BYTES && self.replay.len() > 1
        {
            let Some(dropped) = self.replay.pop_front() else {
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

/// How many events a slow reader may be behind.
const MAX_UNREAD_EVENTS: usize = 1_024;

/// The same for stdio, which cannot be resumed.
const MAX_UNREAD_STDIO_EVENTS: usize = 1 << 20;

/// How many events of a stream are retained for replay.
const MAX_REPLAY_EVENTS: usize = 256;

/// How many bytes of a stream are retained.
const MAX_REPLAY_BYTES: usize = 1 << 20;

/// How many bytes of all streams of a session are retained.
const MAX_SESSION_REPLAY_BYTES: usize = 4 << 20;

/// How many streams of a session are retained.
const MAX_STREAMS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: &mut StreamReader) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        while let Ok(event) = reader.receiver.try_recv() {
            lines.push((
                event.position.1,
                event.line.as_deref().unwrap_or_default().to_owned(),
            ));
        }
        lines
    }

    #[test]
    fn a_message_is_sent_on_exactly_one_stream() {
        let session_streams = SessionStreams::default();
        let mut one = session_streams.open(StreamKind::General);
        let mut two = session_streams.open(StreamKind::General);
        session_streams.send(session_streams.general().unwrap(), "x");
        assert_eq!(lines(&mut one).len() + lines(&mut two).len(), 1);
    }

    #[test]
    fn a_resumed_stream_replays_its_own_missed_events() {
        // V1-RESUME-3.
        let session_streams = SessionStreams::default();
        let mut mine = session_streams.open(StreamKind::General);
        let other = session_streams.open(StreamKind::Response);
        session_streams.send(mine.stream, "a");
        session_streams.send(other.stream, "not mine");
        assert_eq!(lines(&mut mine), [(1, "a".into())]);
        let stream = mine.stream;
        drop(mine);
        assert_eq!(session_streams.general(), None);
        session_streams.send(stream, "b");
        session_streams.send(stream, "c");
        let mut again = session_streams.resume(stream, 1).unwrap();
        assert_eq!(lines(&mut again), [(2, "b".into()), (3, "c".into())]);
        session_streams.send(stream, "d");
        assert_eq!(lines(&mut again), [(4, "d".into())]);
        assert_eq!(session_streams.resume(StreamId(77), 0).map(drop), None);
    }

    #[test]
    fn the_replay_of_a_stream_is_bounded() {
        let session_streams = SessionStreams::default();
        let stream = session_streams.open(StreamKind::General).stream;
        for _ in 0..1_000 {
            session_streams.send(stream, "x".repeat(10_000));
        }
        // A gap is detected.
        assert!(session_streams.resume(stream, 0).is_none());
        let kept = MAX_REPLAY_BYTES as u64 / 10_000;
        let mut again = session_streams.resume(stream, 1_000 - kept).unwrap();
        assert_eq!(lines(&mut again).len() as u64, kept);
        for _ in 0..1_000 {
            drop(session_streams.open(StreamKind::Response));
        }
        assert!(session_streams.lock().streams.len() <= MAX_STREAMS + 1);
    }

    #[test]
    fn the_replay_of_all_streams_is_bounded() {
        let session_streams = SessionStreams::default();
        let mut streams = Vec::new();
        for _ in 0..50 {
            let stream = session_streams.open(StreamKind::Response).stream;
            session_streams.send(stream, "x".repeat(900_000));
            session_streams.finish(stream, "last");
            streams.push(stream);
        }
        let kept = |stream| lines(&mut session_streams.resume(stream, 0).unwrap()).len();
        assert_eq!(kept(streams[0]), 0);
        assert_eq!(kept(streams[49]), 2);
        let sum = |streams: &Streams| {
            let sizes = streams.streams.values().map(|stream| stream.bytes);
            sizes.sum::<usize>()
        };
        let bytes = session_streams.lock().bytes;
        assert!(
            bytes <= MAX_SESSION_REPLAY_BYTES && bytes == sum(&session_streams.lock()),
            "{bytes}"
        );
        for stream in streams {
            session_streams.end(stream);
        }
        assert_eq!(session_streams.lock().bytes, 0);
    }
}
