//! What both files of a ledger say beyond what the tables have. Nothing is changed.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use super::append::{End, paths};
use super::entry::{self, Entry};
use super::frame::{self, Frame, HEADER};
use crate::sqlite::error::OpenError;
use crate::sqlite::unwritten::{Change, Changes, Stood};

/// What was found.
#[derive(Debug)]
pub(in crate::sqlite) struct Found {
    /// Which ledger goes with the file.
    pub(in crate::sqlite) name: i64,
    /// The last frame that the tables have.
    pub(in crate::sqlite) filled: u64,
    /// What the frames behind it say.
    pub(in crate::sqlite) changes: Changes,
    /// Where frames go on.
    pub(in crate::sqlite) end: End,
}

/// Why a ledger cannot be read.
#[derive(Debug)]
pub(in crate::sqlite) enum Trouble {
    /// Frames are missing. While another process writes, they may have come into the tables just now.
    Gap { after: u64, before: u64 },
    /// Anything else.
    Open(OpenError),
}

/// The bytes of both files, as they are at one moment each.
#[derive(Debug)]
pub(in crate::sqlite) struct Files([Vec<u8>; 2]);

impl Files {
    /// Reads the files of the ledger of the store at `path`. Whoever does not hold the lock reads them before the tables: what
    /// they lose meanwhile is there then.
    pub(in crate::sqlite) fn read(path: &Path) -> Result<Self, OpenError> {
        let mut files = [Vec::new(), Vec::new()];
        for (bytes, path) in files.iter_mut().zip(paths(path)) {
            match fs::read(&path) {
                Ok(read) => *bytes = read,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(OpenError::io(&path)(error)),
            }
        }
        Ok(Self(files))
    }
}

/// What the files say beyond what `connection` sees.
pub(in crate::sqlite) fn read(
    path: &Path,
    connection: &Connection,
    Files(files): &Files,
) -> Result<Found, Trouble> {
    let number = |name: &str| {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let value = connection.query_row(sql, [name], |row| row.get::<_, i64>(0));
        let value = value.optional().map_err(OpenError::sqlite(path))?;
        value.ok_or_else(|| OpenError::corrupt(path, format!("it does not say `{name}`")))
    };
    let name = number("ledger")?;
    let filled = number("filled_to")?;
    let filled = u64::try_from(filled)
        .map_err(|_| OpenError::corrupt(path, format!("its `filled_to` is {filled}")))?;
    let [first, second] = files.each_ref().map(|bytes| frame::read(bytes, name));
    let last = |frames: &[Frame<'_>]| frames.last().map_or(0, |frame| frame.number);
    let lasts = [last(&first.0), last(&second.0)];
    let newest = usize::from(lasts[1] > lasts[0]);
    let end = match lasts[newest] >= filled {
        true => End {
            file: newest,
            at: [first.1 as u64, second.1 as u64],
            last: lasts,
            next: lasts[newest] + 1,
        },
        // The tables passed over a frame that was never confirmed. Numbers in a file follow one another.
        false => End::beginning(filled + 1),
    };
    let mut frames = [first.0, second.0].concat();
    frames.retain(|frame| frame.number > filled);
    frames.sort_by_key(|frame| frame.number);
    let mut changes = Changes::default();
    for (frame, expected) in frames.iter().zip(filled + 1..) {
        if frame.number != expected {
            let (after, before) = (expected - 1, frame.number);
            return Err(Trouble::Gap { after, before });
        }
        note(&mut changes, frame).ok_or_else(|| {
            let what = format!("frame {expected} of its ledger holds what nobody wrote");
            OpenError::corrupt(path, what)
        })?;
    }
    Ok(Found {
        name,
        filled,
        changes,
        end,
    })
}

fn note(changes: &mut Changes, frame: &Frame<'_>) -> Option<()> {
    let bytes = Arc::new(frame.bytes.to_owned());
    for entry in entry::read(&bytes, HEADER) {
        let (id, change) = match entry? {
            Entry::Added(id, row, blocks) => {
                let image = Some(blocks.image(&bytes));
                (
                    id,
                    Change {
                        from: None,
                        row,
                        image,
                    },
                )
            }
            Entry::Changed(id, from, row, blocks) => {
                let image = Some(blocks.image(&bytes));
                (
                    id,
                    Change {
                        from: Some(from),
                        row,
                        image,
                    },
                )
            }
            Entry::Gone(id, from) => {
                let Stood { row, .. } = from;
                (
                    id,
                    Change {
                        from: Some(from),
                        row,
                        image: None,
                    },
                )
            }
            Entry::Passed(row) => {
                let next = row.position().0 + 1;
                changes.next_position = changes.next_position.max(next);
                continue;
            }
            Entry::Record(write) => {
                changes.note_record(write);
                continue;
            }
        };
        changes.note(id, change);
    }
    changes.upto = frame.number;
    changes.bytes += bytes.len();
    Some(())
}

impl Trouble {
    /// The trouble of a store that nobody else writes.
    pub(in crate::sqlite) fn at(self, path: &Path) -> OpenError {
        match self {
            Self::Open(error) => error,
            Self::Gap { after, before } => {
                let what = format!(
                    "its tables end with frame {after} of its ledger, which goes on with frame {before}; \
                     if it is a copy, move {}.ledger-* away",
                    path.display()
                );
                OpenError::corrupt(path, what)
            }
        }
    }
}

impl From<OpenError> for Trouble {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}
