//! The two files, and one frame more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::frame::{self, HEADER};
use super::segment::Segment;
use crate::sqlite::file;
use crate::sqlite::options::Durability;

/// A ledger that is written.
#[derive(Debug)]
pub(in crate::sqlite) struct Ledger {
    path: PathBuf,
    /// Which ledger it is.
    name: i64,
    /// The number of the next frame.
    next: u64,
    /// The one that is written, and the one before it.
    segments: [Segment; 2],
    durability: Durability,
}

/// Where frames go on.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct End {
    /// Which of the files is written.
    pub(super) file: usize,
    /// The ends of what counts in them.
    pub(super) at: [u64; 2],
    /// The numbers of their last frames.
    pub(super) last: [u64; 2],
    /// The number of the next frame.
    pub(super) next: u64,
}

impl End {
    /// With nothing that counts before the frame `next`.
    pub(super) fn beginning(next: u64) -> Self {
        Self {
            file: 0,
            at: [0; 2],
            last: [0; 2],
            next,
        }
    }
}

impl Ledger {
    /// Goes on with the ledger of the store at `path`.
    pub(in crate::sqlite) fn go_on(
        path: &Path,
        name: i64,
        end: End,
        durability: Durability,
    ) -> io::Result<Self> {
        let [first, second] = paths(path);
        let first = Segment::open(&first, end.at[0], end.last[0])?;
        let second = Segment::open(&second, end.at[1], end.last[1])?;
        if durability == Durability::Power {
            // The process before may have died between a write and its sync.
            first.sync()?;
            second.sync()?;
            file::sync_folder(path)?;
        }
        Ok(Self {
            path: path.to_owned(),
            name,
            next: end.next,
            segments: match end.file {
                0 => [first, second],
                _ => [second, first],
            },
            durability,
        })
    }

    /// Begins both files anew after a disk did not confirm. What they said must be in the tables.
    pub(in crate::sqlite) fn begin_anew(&mut self) -> io::Result<()> {
        let end = End::beginning(self.next);
        for path in paths(&self.path) {
            remove_file(&path)?;
        }
        *self = Self::go_on(&self.path, self.name, end, self.durability)?;
        Ok(())
    }

    /// The number of the next frame.
    pub(in crate::sqlite) fn next(&self) -> u64 {
        self.next
    }

    /// Passes over a number: whatever the disk has of that frame does not count.
    pub(in crate::sqlite) fn pass_over(&mut self) {
        self.next += 1;
    }

    /// Empties `frame` and leaves room for what goes before the entries.
    pub(in crate::sqlite) fn begin(frame: &mut Vec<u8>) {
        frame.clear();
        frame.resize(HEADER, 0);
    }

    /// Makes room for the frame. Nothing is written that counts, so nothing is lost if there is none. Frames up to
    /// `filled` are in the tables.
    pub(in crate::sqlite) fn make_room(&mut self, frame: &[u8], filled: u64) -> io::Result<()> {
        let [written, other] = &self.segments;
        if written.is_long() && other.last() <= filled {
            self.segments.swap(0, 1);
            self.segments[0].begin_anew();
        }
        self.segments[0].make_room(frame.len())
    }

    /// Appends a frame for which there is room, and waits for the disk.
    pub(in crate::sqlite) fn append(&mut self, frame: &mut [u8]) -> io::Result<()> {
        frame::seal(frame, self.name, self.next);
        let [written, _] = &mut self.segments;
        written.append(frame, self.next)?;
        if self.durability == Durability::Power {
            // Whatever the reason is: what the disk has of the frame is unknown now.
            written.sync().map_err(io::Error::other)?;
        }
        self.next += 1;
        Ok(())
    }

    /// Removes the files. What they said must be in the tables.
    pub(in crate::sqlite) fn remove(self) {
        for path in paths(&self.path) {
            let _ = remove_file(&path);
        }
    }
}

/// Where the files of a ledger are.
pub(super) fn paths(store: &Path) -> [PathBuf; 2] {
    [".ledger-a", ".ledger-b"].map(|suffix| file::beside(store, suffix))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
