//! One of the files of a ledger. Room in it is set aside before it is needed, so that a sync writes what was appended and
//! nothing else.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use crate::sqlite::file;

#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    /// Where the next frame goes.
    at: u64,
    /// How much is set aside.
    size: u64,
    /// The number of the last frame.
    last: u64,
}

impl Segment {
    /// Opens the file, or makes it; `at` is the end of what counts in it, `last` the number of its last frame.
    pub(super) fn open(path: &Path, at: u64, last: u64) -> io::Result<Self> {
        let file = file::open_private(path)?;
        // What lies behind was never confirmed, and must not follow what will be.
        let size = file.metadata()?.len().min(at);
        file.set_len(size)?;
        Ok(Self {
            file,
            at,
            size,
            last,
        })
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether it is time to go on in the other file.
    pub(super) fn is_long(&self) -> bool {
        self.at >= LONG
    }

    /// Goes on at the beginning of the file.
    pub(super) fn begin_anew(&mut self) {
        self.at = 0;
    }

    /// Sets room aside for `length` bytes more.
    pub(super) fn make_room(&mut self, length: usize) -> io::Result<()> {
        let needed = self.at + length as u64;
        if needed <= self.size {
            return Ok(());
        }
        let size = needed.max(self.size + self.size.clamp(FEW, MANY));
        self.file.seek(SeekFrom::Start(self.size))?;
        let zeros = [0; 64 << 10];
        while self.size < size {
            let portion = (size - self.size).min(zeros.len() as u64);
            self.file.write_all(&zeros[..portion as usize])?;
            self.size += portion;
        }
        Ok(())
    }

    /// Writes a frame where there is room for it.
    pub(super) fn append(&mut self, frame: &[u8], number: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.write_all(frame)?;
        self.at += frame.len() as u64;
        self.last = number;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// How long a file becomes before the other one is used.
const LONG: u64 = 16 << 20;

/// How much is set aside at a time, at least and at most.
const FEW: u64 = 64 << 10;
const MANY: u64 = 1 << 20;
