//! Connections with the settings that the promises rest on.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, PrepFlags, Statement};

use super::file;
#[cfg(target_vendor = "apple")]
use super::options::Durability;
use super::options::SqliteOptions;

/// The connection that writes. There is one. Changes nothing in a file that is ours.
pub(super) fn writing(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    set_up(open_to_write(path)?, options)
}

/// A connection to an empty file, which it gives the shape that a file keeps for life.
pub(super) fn creating(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = open_to_write(path)?;
    connection.pragma_update(None, "page_size", PAGE)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    set_up(connection, options)
}

/// A connection that only reads.
pub(super) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -(8 << 10))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    Ok(connection)
}

/// A statement for the life of the connection. SQLite's own memory for small and short-lived things stays free for
/// what is bound.
pub(super) fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
) -> rusqlite::Result<Statement<'c>> {
    connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)
}

/// Waits until the disk has the log of the tables. SQLite itself syncs it only when it moves it into the file, and a reader
/// may keep it from that.
pub(super) fn sync_log(path: &Path) -> io::Result<()> {
    let log = file::beside(path, "-wal");
    match OpenOptions::new().write(true).open(log) {
        // Whatever the reason is: what the disk has of it is unknown now.
        Ok(log) => log.sync_data().map_err(io::Error::other),
        // It has been moved into the file, which is synced.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// How many pages the file may have.
pub(super) fn page_limit(options: &SqliteOptions) -> Option<u64> {
    let bytes = options.max_bytes?;
    Some((bytes / PAGE as u64).max(1))
}

fn open_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

fn set_up(connection: Connection, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What is promised is in the ledger, which is given up only when the filler has synced the log of the tables.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    #[cfg(target_vendor = "apple")]
    if options.durability == Durability::Power {
        // Elsewhere a sync reaches the disk; here it must be asked to.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "locking_mode", "NORMAL")?;
    if let Some(pages) = page_limit(options) {
        connection.pragma_update(None, "max_page_count", pages.cast_signed())?;
    }
    Ok(connection)
}

/// What the writer keeps of the file, in KiB. It changes what is new; and when pages have changed places, SQLite walks over
/// all that it keeps at the end of a transaction.
const WRITER_CACHE: i64 = 16 << 10;

/// How long to wait for another program that looks into the file.
const BUSY: Duration = Duration::from_millis(5_000);

pub(super) const PAGE: u32 = 8_192;
