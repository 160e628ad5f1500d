//! Connections, with the settings that durability depends on.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, PrepFlags, Statement};

use super::options::{Durability, SqliteOptions};

/// Opens the only connection that writes. Opening it does not change a file of this version, and
/// closing it changes nothing until [`set_checkpoint_on_close`] allows that.
pub(super) fn writing(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = open_to_write(path)?;
    set_checkpoint_on_close(&connection, false)?;
    set_up(connection, options)
}

/// Sets whether closing the last connection moves the log into the file and deletes it.
pub(super) fn set_checkpoint_on_close(
    connection: &Connection,
    allowed: bool,
) -> rusqlite::Result<()> {
    let never = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(never, !allowed).map(drop)
}

/// Moves the log into the file and truncates it. A crash can leave parts of a torn transaction
/// after the last complete one. Without this, new transactions are written before those parts, and
/// after a second crash they look like a damaged transaction in the middle of the log.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    match connection.query_row(sql, (), |_| Ok(())) {
        // A full disk or another program that reads the file can prevent it. Nothing is lost.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
        done => done,
    }
}

/// Opens a connection to an empty file and sets its page size and vacuum mode.
pub(super) fn creating(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = open_to_write(path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    set_up(connection, options)
}

/// Opens a connection to a file that becomes a copy of a store.
pub(super) fn writing_copy(path: &Path) -> rusqlite::Result<Connection> {
    open_to_write(path)
}

/// Opens a connection that only reads.
pub(super) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -(8 << 10))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    Ok(connection)
}

/// Prepares a statement that is kept as long as the connection. It does not use SQLite's lookaside
/// memory, which stays free for bound values.
pub(super) fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
) -> rusqlite::Result<Statement<'c>> {
    connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)
}

/// The maximum number of pages of the file.
pub(super) fn page_limit(options: &SqliteOptions) -> Option<u64> {
    let bytes = options.max_bytes?;
    Some((bytes / PAGE_BYTES as u64).max(1))
}

fn open_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn set_up(connection: Connection, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.durability {
        Durability::Power => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    #[cfg(target_vendor = "apple")]
    if options.durability == Durability::Power {
        // On Apple systems `fsync` does not flush the disk's cache.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    connection.pragma_update(None, "wal_autocheckpoint", 1_000)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "locking_mode", "NORMAL")?;
    if let Some(pages) = page_limit(options) {
        connection.pragma_update(None, "max_page_count", pages.cast_signed())?;
    }
    Ok(connection)
}

/// The page cache of the writer, in KiB. It is small because the writer mostly changes new pages,
/// and because SQLite iterates over the whole cache at the end of a transaction that moved pages.
const WRITER_CACHE_KIB: i64 = 16 << 10;

/// How long to wait for another program that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);

const PAGE_BYTES: u32 = 8_192;
