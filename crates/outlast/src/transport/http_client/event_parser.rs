//! A parser of server-sent events: bytes in, events out, no I/O.

use std::time::Duration;

use crate::transport::link::TransportError;

/// Parses bytes into events.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    line: Vec<u8>,
    after_return: bool,
    began: bool,
    data: Vec<u8>,
    has_data: bool,
    /// The id of the current event.
    next_id: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    limit: usize,
    /// How many bytes of the current event were dropped.
    dropped: usize,
    /// The size of the last event that was dropped.
    too_large: Option<usize>,
}

impl EventParser {
    /// A parser that drops events of more than `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// The last event id, for `Last-Event-MAX_ID_BYTES`.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The reconnection delay that the server has set.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The error for an event that was too large: a complete one, or one that does not end.
    pub(super) fn too_large(&mut self) -> Option<TransportError> {
        let is_endless = self.dropped > self.limit.saturating_mul(ENDLESS_FACTOR);
        let unfinished = is_endless.then(|| self.size());
        let ended = self.too_large.take();
        Some(TransportError::TooLarge {
            bytes: ended.or(unfinished)? as u64,
            is_whole: ended.is_some(),
            limit: self.limit as u64,
        })
    }

    /// The size of the current event.
    fn size(&self) -> usize {
        self.line.len() + self.data.len() + self.dropped
    }

    /// Resets the parser for a new connection of the stream, which repeats an incomplete event.
    pub(super) fn reconnected(&mut self) {
        self.line.clear();
        self.data.clear();
        self.next_id.clone_from(&self.id);
        (self.after_return, self.began, self.has_data) = Default::default();
        (self.dropped, self.too_large) = Default::default();
    }

    /// Returns the data of every event that `bytes` complete. Events without data are skipped.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for byte in bytes {
            match (byte, std::mem::take(&mut self.after_return)) {
                (b'\n', true) => {}
                (b'\n', false) => events.extend(self.end_line()),
                (b'\r', _) => {
                    self.after_return = true;
                    events.extend(self.end_line());
                }
                (byte, _) => {
                    if self.line.len() + self.data.len() < self.limit {
                        self.line.push(*byte);
                    } else {
                        self.dropped += 1;
                    }
                }
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.began, true) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (&line[..], &[][..]),
        };
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                let id = str::from_utf8(value)
                    .ok()
                    .filter(|id| id.len() <= MAX_ID_BYTES);
                self.next_id = id.map(str::to_owned);
            }
            b"retry" => {
                let millis = str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // Comments, event names and unknown fields.
            _ => {}
        }
        // Do not keep a large buffer for the next line.
        line.clear();
        if line.capacity() <= MAX_SPARE_BYTES {
            self.line = line;
        }
        None
    }

    fn end_event(&mut self) -> Option<Vec<u8>> {
        let size = self.size();
        let data = std::mem::take(&mut self.data);
        // The id counts only when the event is complete.
        self.id.clone_from(&self.next_id);
        let has_data = std::mem::take(&mut self.has_data);
        let is_too_large = std::mem::take(&mut self.dropped) > 0;
        if is_too_large {
            self.too_large = Some(size);
            tracing::warn!(
                size,
                limit = self.limit,
                "dropped an event that is too large"
            );
        }
        (has_data && !is_too_large && !data.is_empty()).then_some(data)
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An event that exceeds the limit by this factor counts as endless.
const ENDLESS_FACTOR: usize = 4;

/// The maximum size of an event id.
const MAX_ID_BYTES: usize = 4 << 10;

/// The maximum size of a buffer that is reused.
const MAX_SPARE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(text: &[u8], step: usize) -> (Vec<String>, EventParser) {
        let mut events = EventParser::new(1_000);
        let found = text.chunks(step).flat_map(|part| events.parse(part));
        let found: Vec<_> = found.map(|data| String::from_utf8(data).unwrap()).collect();
        (found, events)
    }

    #[test]
    fn events_do_not_depend_on_how_bytes_are_split() {
        let text = "\u{feff}id: 1\nretry: 250\ndata:\n\n: comment\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\rid: 2\r\rid: 3\rdata: cut off";
        for step in 1..text.len() {
            let (found, events) = parse_all(text.as_bytes(), step);
            assert_eq!(found, ["{\"a\":\n1}", "x"], "{step}");
            assert_eq!(events.last_event_id(), Some("2"));
            assert_eq!(events.retry(), Some(Duration::from_millis(250)));
        }
    }

    #[test]
    fn a_too_large_event_is_dropped_and_parsing_continues() {
        let text = format!("data: {}\n\ndata: y\n\n", "x".repeat(5_000));
        assert_eq!(parse_all(text.as_bytes(), 64).0, ["y"]);
        let text = format!("{}\n\ndata: z\n\n", "data: xxxxxxxxx\n".repeat(500));
        assert_eq!(parse_all(text.as_bytes(), 64).0, ["z"]);
    }

    #[test]
    fn a_too_large_or_endless_event_is_reported_once() {
        let large = |bytes, is_whole| TransportError::TooLarge {
            bytes,
            is_whole,
            limit: 1_000,
        };
        let mut events = EventParser::new(1_000);
        events.parse(b"data: ");
        assert_eq!(events.parse(&[b'x'; 4_000]).len(), 0);
        assert_eq!(events.too_large(), None);
        events.parse(b"\n\n");
        assert_eq!(events.too_large(), Some(large(4_000, true)));
        assert_eq!(events.too_large(), None);
        events.parse(&[b'x'; 6_000]);
        assert_eq!(events.too_large(), Some(large(6_000, false)));
    }

    #[test]
    fn unknown_and_invalid_fields_are_ignored() {
        let text = "id: a\0b\nretry: soon\nretry\ndata: 1\n\nfoo: bar\ndata\n\n";
        let (found, events) = parse_all(text.as_bytes(), 3);
        assert_eq!(found, ["1"]);
        assert_eq!((events.last_event_id(), events.retry()), (None, None));
    }
}
