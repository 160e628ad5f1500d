//! Whether there is room for new tasks. Those that exist are finished as long as anything fits.
//!
//! Two limits: the one that an operator sets, near which new tasks are refused, and the end of the
//! disk, against which a small file is kept that can be given up.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;

use crate::sqlite::connect;
use crate::sqlite::fault::Fault;
use crate::sqlite::file;
use crate::sqlite::filler::Filler;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::probe::FailAs;
use crate::sqlite::store::Shared;

/// Whether there is room for new tasks.
#[derive(Debug)]
pub(super) struct Room {
    /// How many pages the file may have.
    pages: Option<u64>,
    reserve: PathBuf,
    shut: Option<Shut>,
}

#[derive(Debug)]
struct Shut {
    reason: Reason,
    since: Instant,
}

impl Room {
    pub(super) fn new(path: &Path, options: &SqliteOptions) -> Self {
        let room = Self {
            pages: connect::page_limit(options),
            reserve: file::reserve(path),
            shut: None,
        };
        // A disk that is full from the start is found out by the first write.
        let _ = room.fill_reserve();
        room
    }

    /// Whether new tasks are refused.
    pub(super) fn is_shut(&self) -> bool {
        self.shut.is_some()
    }

    /// Says why a new task is refused now. From time to time one is let through as a trial.
    pub(super) fn refusal(&mut self, shared: &Shared, filler: &Filler) -> Option<Reason> {
        if let Some(shut) = &self.shut
            && shut.since.elapsed() < TRIAL
        {
            return Some(shut.reason.clone());
        }
        if !self.is_crowded(shared, filler) {
            return None;
        }
        let reason = full().reason();
        self.shut(reason.clone());
        Some(reason)
    }

    /// Refuses new tasks from now on, and gives up what was kept for this moment.
    pub(super) fn shut(&mut self, reason: Reason) {
        let since = Instant::now();
        self.shut = Some(Shut { reason, since });
        let _ = fs::remove_file(&self.reserve);
    }

    /// Lets new tasks in again.
    pub(super) fn open(&mut self) {
        self.shut = None;
        let _ = self.fill_reserve();
    }

    /// Tries whether there is room again without anybody's task; says whether there is.
    pub(super) fn recovers(&mut self, shared: &Shared, filler: &Filler) -> bool {
        let Some(shut) = &mut self.shut else {
            return true;
        };
        if shut.since.elapsed() < TRIAL {
            return false;
        }
        shut.since = Instant::now();
        if self.is_crowded(shared, filler) {
            return false;
        }
        filler.compact();
        if self.fill_reserve().is_err() {
            return false;
        }
        self.shut = None;
        true
    }

    /// Whether the file can become so many bytes larger.
    pub(super) fn fits(&self, bytes: usize, shared: &Shared, filler: &Filler) -> bool {
        let Some(pages) = self.pages else {
            return true;
        };
        leaves(filler, || pages >= used(shared, bytes))
    }

    /// Whether the file is so near to its limit that the rest is for finishing.
    fn is_crowded(&self, shared: &Shared, filler: &Filler) -> bool {
        let Some(pages) = self.pages else {
            return false;
        };
        let kept = (pages / 20).max(KEPT_PAGES);
        !leaves(filler, || pages >= used(shared, 0) + kept)
    }

    fn fill_reserve(&self) -> io::Result<()> {
        if fs::metadata(&self.reserve).is_ok_and(|found| found.len() == RESERVE) {
            return Ok(());
        }
        let mut file = file::open_private(&self.reserve)?;
        let zeros = [0; 64 << 10];
        // Not synced: the system sets the room aside when it takes the bytes.
        let written = (0..RESERVE / zeros.len() as u64).try_for_each(|_| file.write_all(&zeros));
        if written.is_err() {
            let _ = fs::remove_file(&self.reserve);
        }
        written
    }
}

/// Whether there is `enough`, now or when the tables have everything: what was removed leaves room only then.
fn leaves(filler: &Filler, enough: impl Fn() -> bool) -> bool {
    enough() || filler.flush().is_ok() && enough()
}

/// How many pages the file will use with so many bytes more than it has been promised.
fn used(shared: &Shared, bytes: usize) -> u64 {
    let coming = (shared.unwritten.bytes() + bytes) as u64;
    shared.used.load(Ordering::Acquire) + coming.div_ceil(connect::PAGE.into())
}

/// What callers hear of a full disk.
pub(super) fn full() -> Fault {
    FailAs::DiskFull.into()
}

/// How often a store without room tries whether there is some.
pub(super) const TRIAL: Duration = Duration::from_secs(1);

/// How much of the disk is kept for finishing: what a log of usual length adds to the file.
const RESERVE: u64 = 4 << 20;

/// How many pages below the limit are kept for finishing, at least.
const KEPT_PAGES: u64 = 64;
