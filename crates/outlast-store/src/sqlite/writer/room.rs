//! Whether there is room for new tasks. Those that exist are finished as long as anything fits.
//!
//! Two limits: the one that an operator sets, near which new tasks are refused, and the end of the
//! disk, against which a small file is kept that can be given up.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;
use rusqlite::Connection;

use crate::sqlite::connect;
use crate::sqlite::fault::Fault;
use crate::sqlite::file;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::probe::FailAs;

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
            reserve: file::beside(path, ".reserve"),
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
    pub(super) fn refusal(&mut self, connection: &Connection) -> Result<Option<Reason>, Fault> {
        if let Some(shut) = &self.shut
            && shut.since.elapsed() < TRIAL
        {
            return Ok(Some(shut.reason.clone()));
        }
        if !self.is_crowded(connection)? {
            return Ok(None);
        }
        self.shut(no_room());
        Ok(Some(no_room()))
    }

    /// Refuses new tasks from now on, and gives up what was kept for this moment.
    pub(super) fn shut(&mut self, reason: Reason) {
        let since = Instant::now();
        self.shut = Some(Shut { reason, since });
        let _ = fs::remove_file(&self.reserve);
    }

    /// The same, and moves the log into the file, which leaves room for it to be written anew. Says
    /// whether that was tried: not if it was a moment ago.
    pub(super) fn shut_and_compact(&mut self, reason: Reason, connection: &Connection) -> bool {
        let lately = self
            .shut
            .as_ref()
            .is_some_and(|shut| shut.since.elapsed() < TRIAL);
        self.shut(reason);
        if !lately {
            compact(connection);
        }
        !lately
    }

    /// Lets new tasks in again.
    pub(super) fn open(&mut self) {
        self.shut = None;
        let _ = self.fill_reserve();
    }

    /// Tries whether there is room again without anybody's task; says whether there is.
    pub(super) fn recovers(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let Some(shut) = &mut self.shut else {
            return Ok(true);
        };
        if shut.since.elapsed() < TRIAL {
            return Ok(false);
        }
        shut.since = Instant::now();
        if self.is_crowded(connection)? {
            return Ok(false);
        }
        compact(connection);
        if self.fill_reserve().is_err() {
            return Ok(false);
        }
        self.shut = None;
        Ok(true)
    }

    /// Whether the file is so near to its limit that the rest is for finishing.
    fn is_crowded(&self, connection: &Connection) -> Result<bool, Fault> {
        let Some(pages) = self.pages else {
            return Ok(false);
        };
        let number = |pragma: &str| -> rusqlite::Result<u64> {
            let mut statement = connection.prepare_cached(pragma)?;
            statement.query_row((), |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
        };
        let used = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        let kept = (pages / 20).max(KEPT_PAGES);
        Ok(used + kept > pages)
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

/// Where it fails, the log stays as it is.
fn compact(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

fn no_room() -> Reason {
    Fault::from(FailAs::DiskFull).reason()
}

/// How often a store without room tries whether there is some.
pub(super) const TRIAL: Duration = Duration::from_secs(1);

/// How much of the disk is kept for finishing: what a log of usual length adds to the file.
const RESERVE: u64 = 4 << 20;

/// How many pages below the limit are kept for finishing, at least.
const KEPT_PAGES: u64 = 64;
