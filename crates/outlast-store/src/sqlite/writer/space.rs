//! Checks for space for new tasks. Running tasks may finish as long as their data fits.
//!
//! There are two limits: the configured size of the file, near which new tasks are refused, and the
//! size of the disk, for which a small reserve file exists that can be deleted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;
use rusqlite::Connection;

use crate::sqlite::connect;
use crate::sqlite::failpoint::DiskFailure;
use crate::sqlite::file;
use crate::sqlite::file_fault::FileFault;
use crate::sqlite::options::SqliteOptions;

#[derive(Debug)]
pub(super) struct Space {
    /// The maximum number of pages of the file.
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
        // A disk that is full from the start is detected by the first write.
        let _ = space.fill_reserve();
        space
    }

    /// Whether new tasks are refused.
    pub(super) fn refuses_new_tasks(&self) -> bool {
        self.no_space.is_some()
    }

    /// Returns why new tasks are refused, if they are. After an interval, one task is let through
    /// to test again.
    pub(super) fn refusal(&mut self, connection: &Connection) -> Result<Option<Reason>, FileFault> {
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

    /// The same, and runs a checkpoint so that the log can be reused. Returns whether a checkpoint
    /// was run: not if the last one was a moment ago.
    pub(super) fn refuse_and_checkpoint(
        &mut self,
        reason: Reason,
        connection: &Connection,
    ) -> bool {
        let recently = self
            .no_space
            .as_ref()
            .is_some_and(|no_space| no_space.since.elapsed() < RETRY_INTERVAL);
        self.no_space(reason);
        if !recently {
            checkpoint(connection);
        }
        !recently
    }

    /// Accepts new tasks again.
    pub(super) fn open(&mut self) {
        self.no_space = None;
        let _ = self.fill_reserve();
    }

    /// Checks whether there is space again.
    pub(super) fn recovers(&mut self, connection: &Connection) -> Result<bool, FileFault> {
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
        checkpoint(connection);
        if self.fill_reserve().is_err() {
            return Ok(false);
        }
        self.no_space = None;
        Ok(true)
    }

    /// Whether the file is so close to its limit that the rest is reserved for running tasks.
    fn is_near_limit(&self, connection: &Connection) -> Result<bool, FileFault> {
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
        // Not synced: the operating system allocates the space when it accepts the bytes.
        let written =
            (0..RESERVE_BYTES / zeros.len() as u64).try_for_each(|_| file.write_all(&zeros));
        if written.is_err() {
            let _ = fs::remove_file(&self.reserve);
        }
        written
    }
}

/// The path of the reserve file.
pub(in crate::sqlite) fn reserve(path: &Path) -> PathBuf {
    file::side_file(path, ".reserve")
}

/// Runs a checkpoint. If it fails, the log is unchanged.
fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

fn no_space() -> Reason {
    FileFault::from(DiskFailure::Full).reason()
}

/// How often a store without space checks for space.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The disk space that is reserved for running tasks: as much as a log of usual length adds to the
/// file.
const RESERVE_BYTES: u64 = 4 << 20;

/// The number of pages below the limit that are reserved for running tasks.
const RESERVED_PAGES: u64 = 64;
