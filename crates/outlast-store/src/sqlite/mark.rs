//! The mark: one row that every transaction rewrites. It contains the id of the store, the number
//! of its commits, and whether the store was closed.
//!
//! The text has a fixed width and a checksum, so that a mark can also be found in the raw pages of
//! the file and of the log before SQLite opens them.

use rusqlite::{Connection, OptionalExtension};

/// The identity of a store and its newest commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The id of the store: a random number from the creation of the file.
    pub(super) store: u64,
    /// The number of transactions that the writer has committed.
    pub(super) commits: u64,
    /// The next creation number. No task has this number or a greater one.
    pub(super) next_position: u64,
    pub(super) state: MarkState,
}

/// Whether a process uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkState {
    /// A process uses it, or was killed while it used it.
    Open,
    /// The last process closed it: the file contains everything.
    Closed,
}

impl Mark {
    /// The mark of a new store.
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let store: i64 = connection.query_row("SELECT random()", (), |row| row.get(0))?;
        Ok(Self {
            store: store.cast_unsigned(),
            commits: 0,
            next_position: 1,
            state: MarkState::Closed,
        })
    }

    /// The mark in the file, if it has a valid one.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT value FROM meta WHERE name = 'mark'";
        let text: Option<String> = connection.query_row(sql, (), |row| row.get(0)).optional()?;
        Ok(text.and_then(|text| Self::parse(text.as_bytes())))
    }

    /// The mark of the next transaction.
    pub(super) fn next(self, state: MarkState) -> Self {
        Self {
            commits: self.commits + 1,
            state,
            ..self
        }
    }

    /// The text in the file.
    pub(super) fn text(&self) -> String {
        let state = match self.state {
            MarkState::Open => "open  ",
            MarkState::Closed => "closed",
        };
        let text = format!(
            "{PREFIX}{:016x} commit {:020} next {:020} {state} ",
            self.store, self.commits, self.next_position
        );
        let sum = crc32fast::hash(text.as_bytes());
        format!("{text}{sum:08x}")
    }

    /// Parses the mark at the start of `bytes`.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes.get(..MARK_BYTES)?).ok()?;
        let mut words = text.strip_prefix(PREFIX)?.split_ascii_whitespace();
        let mut after = |name: Option<&str>| match name {
            Some(name) => words.next().filter(|word| *word == name).and(words.next()),
            None => words.next(),
        };
        let mark = Self {
            store: u64::from_str_radix(after(None)?, 16).ok()?,
            commits: after(Some("commit"))?.parse().ok()?,
            next_position: after(Some("next"))?.parse().ok()?,
            state: match after(None)? {
                "open" => MarkState::Open,
                "closed" => MarkState::Closed,
                _ => return None,
            },
        };
        (mark.text() == text).then_some(mark)
    }

    /// Finds the mark in a raw page. A page may also contain remains of earlier marks; the newest
    /// is returned.
    pub(super) fn find(page: &[u8]) -> Option<Self> {
        let starts = page.windows(PREFIX.len()).enumerate();
        starts
            .filter(|(_, window)| *window == PREFIX.as_bytes())
            .filter_map(|(at, _)| Self::parse(&page[at..]))
            .max_by_key(|mark| mark.commits)
    }
}

const PREFIX: &str = "outlast-store ";

/// The length of every mark.
const MARK_BYTES: usize = PREFIX.len() + 16 + 28 + 26 + 8 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        Mark {
            store: 0xfeed,
            commits: 41,
            next_position: u64::MAX,
            state: MarkState::Open,
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for mark in [mark(), mark().next(MarkState::Closed)] {
            assert_eq!(mark.text().len(), MARK_BYTES);
            assert_eq!(Mark::parse(mark.text().as_bytes()), Some(mark));
        }
    }

    #[test]
    fn a_mark_with_a_changed_byte_is_invalid() {
        for at in 0..MARK_BYTES {
            let mut bytes = mark().text().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(Mark::parse(&bytes), None, "{at}");
        }
    }

    #[test]
    fn the_newest_mark_of_a_page_is_found() {
        let mut page = vec![0; 300];
        page.extend(mark().text().bytes());
        page.extend(mark().next(MarkState::Open).text().bytes());
        page.extend(mark().text().bytes().take(MARK_BYTES - 1));
        assert_eq!(Mark::find(&page), Some(mark().next(MarkState::Open)));
        assert_eq!(Mark::find(&page[..310]), None);
    }
}
