//! Whether there is space for new tasks. Running tasks may finish as long as anything fits.
//!
//! There are two limits: the configured size of the file, close to which new tasks are refused, and
//! the size of the disk, for which a small reserve file is kept that can be deleted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;
use rusqlite::Connection;

use crate::sqlite::connect;
use crate::sqlite::failpoint::DiskFailure;
use crate::sqlite::fault::Fault;
use crate::sqlite::file;
use crate::sqlite::options::SqliteOptions;

/// Whether there is space for new tasks.
#[derive(Debug)]
pub(super) struct Space {
    /// How many pages the file may have.
    pages: Option<u64>,
    reserve: PathBuf,
    no_space: Option<NoSpace>,
}

#[derive(Debug)]
struct NoSpace {
    reason: Reason,
    since: Instant,
}

impl Space {
    pub(super) fn new(path: &Path, options: &SqliteOptions) -> Self {
        let space = Self {
            pages: connect::page_limit(options),
            reserve: reserve(path),
            no_space: None,
        };
        // A disk that is full from the start is noticed by the first write.
        let _ = space.fill_reserve();
        space
    }

    /// Whether new tasks are refused.
    pub(super) fn is_shut(&self) -> bool {
        self.no_space.is_some()
    }

    /// Why new tasks are refused, if they are. After an interval one is let through as a trial.
    pub(super) fn refusal(&mut self, connection: &Connection) -> Result<Option<Reason>, Fault> {
        if let Some(no_space) = &self.no_space
            && no_space.since.elapsed() < RETRY_INTERVAL
        {
            return Ok(Some(no_space.reason.clone()));
        }
        if !self.is_near_limit(connection)? {
            return Ok(None);
        }
        self.no_space(no_space());
        Ok(Some(no_space()))
    }

    /// Refuses new tasks from now on, and deletes the reserve.
    pub(super) fn no_space(&mut self, reason: Reason) {
        let since = Instant::now();
        self.no_space = Some(NoSpace { reason, since });
        let _ = fs::remove_file(&self.reserve);
    }

    /// The same, and runs a checkpoint, which lets the log be reused. Tells whether a checkpoint was
    /// tried: not if one was a moment ago.
    pub(super) fn shut_and_compact(&mut self, reason: Reason, connection: &Connection) -> bool {
        let recently = self
            .no_space
            .as_ref()
            .is_some_and(|no_space| no_space.since.elapsed() < RETRY_INTERVAL);
        self.no_space(reason);
        if !recently {
            compact(connection);
        }
        !recently
    }

    /// Accepts new tasks again.
    pub(super) fn open(&mut self) {
        self.no_space = None;
        let _ = self.fill_reserve();
    }

    /// Checks whether there is space again.
    pub(super) fn recovers(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let Some(no_space) = &mut self.no_space else {
            return Ok(true);
        };
        if no_space.since.elapsed() < RETRY_INTERVAL {
            return Ok(false);
        }
        no_space.since = Instant::now();
        if self.is_near_limit(connection)? {
            return Ok(false);
        }
        compact(connection);
        if self.fill_reserve().is_err() {
            return Ok(false);
        }
        self.no_space = None;
        Ok(true)
    }

    /// Whether the file is so close to its limit that the rest is for running tasks.
    fn is_near_limit(&self, connection: &Connection) -> Result<bool, Fault> {
        let Some(pages) = self.pages else {
            return Ok(false);
        };
        let number = |pragma: &str| -> rusqlite::Result<u64> {
            let mut statement = connection.prepare_cached(pragma)?;
            statement.query_row((), |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
        };
        let used = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        let reserved = (pages / 20).max(RESERVED_PAGES);
        Ok(used + reserved > pages)
    }

    fn fill_reserve(&self) -> io::Result<()> {
        if fs::metadata(&self.reserve).is_ok_and(|found| found.len() == RESERVE_BYTES) {
            return Ok(());
        }
        let mut file = file::open_private(&self.reserve)?;
        let zeros = [0; 64 << 10];
        // Not synced: the system allocates the space when it accepts the bytes.
        let written =
            (0..RESERVE_BYTES / zeros.len() as u64).try_for_each(|_| file.write_all(&zeros));
        if written.is_err() {
            let _ = fs::remove_file(&self.reserve);
        }
        written
    }
}

/// The file that keeps some of the disk free.
pub(in crate::sqlite) fn reserve(path: &Path) -> PathBuf {
    file::beside(path, ".reserve")
}

/// Runs a checkpoint; where it fails, the log stays as it is.
fn compact(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

fn no_space() -> Reason {
    Fault::from(DiskFailure::Full).reason()
}

/// How often a store without space checks whether there is some.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How much of the disk is kept for running tasks: what a log of usual length adds to the file.
const RESERVE_BYTES: u64 = 4 << 20;

/// How many pages below the limit are kept for running tasks, at least.
const RESERVED_PAGES: u64 = 64;
