//! Opens a store: locks it, checks the files, scans them, starts the threads.
//!
//! Nothing is changed before everything is checked.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use outlast_engine::index::Index;
use outlast_engine::store::Position;
use outlast_wire::Timestamp;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::body_cache::BodyCache;
use super::damage::{self, Log};
use super::file::{self, FileState};
use super::health::HealthState;
use super::lock::Lock;
use super::mark::{Mark, MarkState};
use super::open_files::OpenFiles;
use super::options::SqliteOptions;
use super::readers::Readers;
use super::row::RowId;
use super::store::{Shared, Sqlite};
use super::writer::{self, Writer};
use super::{connect, records, scan, schema};
use crate::open_error::OpenError;

impl Sqlite {
    /// Opens the store at `path`, or creates it.
    pub async fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let (reply, answer) = oneshot::channel();
        let opened = path.clone();
        // A separate thread: scanning a large file takes seconds, and the caller may use any
        // runtime.
        thread::spawn(move || reply.send(Self::open_blocking(opened, options)));
        answer.await.unwrap_or_else(|_| {
            let ended = std::io::Error::other("the thread that opens it ended early");
            Err(OpenError::io(&path)(ended))
        })
    }

    /// As [`Sqlite::open`], for callers without a runtime.
    pub fn open_blocking(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> Result<Self, OpenError> {
        let named = path.as_ref();
        let path = file::resolve(named).map_err(OpenError::io(named))?;
        let mut lock = Lock::take(&path)?;
        file::refuse_ledger(&path)?;
        let log = match file::inspect(&path)? {
            FileState::Store => {
                let log = damage::check_log(&path, options.durability)?;
                if log == Log::Empty {
                    damage::check_length(&path)?;
                }
                log
            }
            FileState::Nothing => {
                file::rename_orphaned_log(&path).map_err(OpenError::io(&path))?;
                lock.clear_commits();
                schema::create(&path, &options)?;
                Log::Empty
            }
        };
        let refused = || OpenError::sqlite(&path);
        let had_log = file::side_file(&path, "-wal").exists();
        let contents = StoreFile::read(&path, &options, log, &lock).inspect_err(|_| {
            if !had_log {
                file::remove_empty_log(&path);
            }
        })?;
        let StoreFile {
            mut connection,
            version,
            mark,
            index,
            record_expiry,
        } = contents;

        for ours in ["", "-wal", "-shm"].map(|suffix| file::side_file(&path, suffix)) {
            file::restrict(&ours).map_err(OpenError::io(&ours))?;
        }
        if had_log {
            connect::empty_log(&connection).map_err(refused())?;
        }
        let mut mark = mark.next(MarkState::Open);
        if version != schema::VERSION {
            schema::migrate(&mut connection, &path, version, &mark)?;
            mark = mark.next(MarkState::Open);
        }
        begin_session(&connection, &path, &mark)?;
        let files = OpenFiles::of(&path).map_err(OpenError::io(&path))?;
        let shared = Arc::new(Shared {
            index,
            bodies: BodyCache::new(options.body_cache_bytes),
            health: HealthState::new(),
            record_expiry: Default::default(),
        });
        shared.set_record_expiry(record_expiry);
        let (readers, threads) = Readers::start(&path, options.readers).map_err(refused())?;
        let (queue, operations) = mpsc::channel();
        let parts = writer::Parts {
            path,
            options,
            mark,
            files,
            lock,
            readers: threads,
        };
        let writer = Writer::new(shared.clone(), operations, parts);
        let thread = thread::Builder::new().name("outlast-writer".to_owned());
        let thread = thread.spawn(move || writer.run(connection));
        Ok(Self::new(
            shared,
            queue,
            readers,
            thread.map_err(OpenError::io(named))?,
        ))
    }
}

/// The content of a complete store.
struct StoreFile {
    connection: Connection,
    version: u32,
    mark: Mark,
    index: Index<RowId>,
    record_expiry: Option<Timestamp>,
}

impl StoreFile {
    /// Reads the file without changing it.
    fn read(
        path: &Path,
        options: &SqliteOptions,
        log: Log,
        lock: &Lock,
    ) -> Result<Self, OpenError> {
        let refused = || OpenError::sqlite(path);
        let connection = connect::writing(path, options).map_err(refused())?;
        let version = schema::require_store(&connection, path)?;
        let mark = Mark::read(&connection).map_err(refused())?;
        let mark = mark.ok_or_else(|| OpenError::corrupt(path, "its mark is missing"))?;
        check_completeness(&mark, path, lock)?;
        let unclean = log == Log::Transactions || mark.state == MarkState::Open;
        let length = fs::metadata(path).map_err(OpenError::io(path))?.len();
        let index = thread::scope(|scope| {
            let checked = (unclean || length <= ALWAYS_CHECKED_BYTES)
                .then(|| scope.spawn(|| check_structure(path)));
            let index = scan::index(&connection, path, Position(mark.next_position));
            if let Some(checked) = checked {
                let checked = checked.join();
                checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            index
        })?;
        Ok(Self {
            index,
            record_expiry: records::next_expiry(&connection).map_err(refused())?,
            connection,
            version,
            mark,
        })
    }
}

/// Refuses a file whose structure is damaged.
fn check_structure(path: &Path) -> Result<(), OpenError> {
    let found = connect::reading(path).and_then(|file| damage::quick_check(&file));
    match found.map_err(OpenError::sqlite(path))? {
        None => Ok(()),
        Some(what) => Err(OpenError::corrupt(path, what)),
    }
}

/// Refuses a file that contains fewer commits than its last process acknowledged.
fn check_completeness(mark: &Mark, path: &Path, lock: &Lock) -> Result<(), OpenError> {
    let Some(acknowledged) = lock.acknowledged() else {
        return Ok(());
    };
    let found = if acknowledged.store == mark.store {
        mark.commits
    } else {
        0
    };
    if found >= acknowledged.commits {
        return Ok(());
    }
    Err(OpenError::Incomplete {
        path: path.to_owned(),
        lock: file::side_file(path, ".lock"),
        acknowledged: acknowledged.commits,
        found,
    })
}

/// Records in the file that a process uses it. The sync also covers what an earlier process left in
/// the log.
fn begin_session(connection: &Connection, path: &Path, mark: &Mark) -> Result<(), OpenError> {
    let refused = || OpenError::sqlite(path);
    let Err(error) = schema::set_mark(connection, mark) else {
        return Ok(());
    };
    // On a full disk the reserve is used first.
    if error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        && fs::remove_file(writer::reserve(path)).is_ok()
    {
        return schema::set_mark(connection, mark).map_err(refused());
    }
    Err(refused()(error))
}

/// A larger file is checked only after an unclean shutdown, because a check reads all of it: about
/// one second per GiB.
const ALWAYS_CHECKED_BYTES: u64 = 1 << 30;
