//! One process per file: a lock file next to it that names the holder.
//!
//! The lock file also contains the mark of the last acknowledged commit. It is not synced: after
//! the end of a process it is exact, and after a crash of the machine it may be older. A store that
//! opens with fewer commits than that has lost some.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_engine::{Clock, SystemClock};

use super::file;
use super::mark::Mark;
use crate::open_error::OpenError;
use crate::private_file;

/// Exclusive use of a store file. Released when dropped, or by the operating system at the end of
/// the process.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The length of the text about the holder.
    holder_bytes: u64,
    /// The mark of the last acknowledged commit in the lock file.
    acknowledged: Option<Mark>,
}

/// The process that has a file open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub process: Option<u32>,
    /// Its program.
    pub program: Option<String>,
    /// When it opened the file.
    pub since: Option<String>,
}

impl Lock {
    /// Takes the lock of the store at `path`, or returns its holder in the error.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = lock_path(path);
        let mut file = file::open_private(&lock).map_err(OpenError::io(&lock))?;
        let mut attempts = LOCK_ATTEMPTS;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // A reader may hold the lock briefly ([`holder`]).
                Err(TryLockError::WouldBlock) if attempts > 0 => {
                    attempts -= 1;
                    std::thread::sleep(LOCK_RETRY_DELAY);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(OpenError::InUse {
                        path: path.to_owned(),
                        holder: Holder::read(&mut file).0,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(OpenError::io(&lock)(error)),
            }
        }
        let acknowledged = Holder::read(&mut file).1;
        let mut taken = Self {
            file,
            holder_bytes: 0,
            acknowledged,
        };
        let text = Holder::this_process().text();
        taken.write(&text).map_err(OpenError::io(&lock))?;
        Ok(taken)
    }

    /// The mark of the last acknowledged commit, if the last process did not close the store.
    pub(super) fn acknowledged(&self) -> Option<Mark> {
        self.acknowledged
    }

    /// Records a commit before it is acknowledged. If that fails, the earlier record stays.
    pub(super) fn record_commit(&mut self, mark: &Mark) {
        self.acknowledged = Some(*mark);
        let _ = self.write_mark();
    }

    /// Records that the file contains every commit, so that the lock file needs no mark.
    pub(super) fn clear_commits(&mut self) {
        self.acknowledged = None;
    }

    fn write(&mut self, holder: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(holder.as_bytes())?;
        self.holder_bytes = holder.len() as u64;
        self.write_mark()
    }

    fn write_mark(&mut self) -> std::io::Result<()> {
        let Some(mark) = self.acknowledged else {
            return Ok(());
        };
        self.file.seek(SeekFrom::Start(self.holder_bytes))?;
        self.file.write_all(mark.text().as_bytes())
    }
}

/// Returns the process that has the store at `path` open, if there is one.
///
/// The text of a killed process stays in the file, so this also tries to take the lock, shared and
/// briefly.
pub(super) fn holder(path: &Path) -> std::io::Result<Option<Holder>> {
    let mut file = match private_file::open_unchanged(&lock_path(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| None),
        Err(TryLockError::WouldBlock) => Ok(Some(Holder::read(&mut file).0)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is not deleted: another process that waits for the lock must find the same file.
        let _ = match self.acknowledged {
            None => self.file.set_len(0),
            Some(_) => self.write("\n\n\n"),
        };
        let _ = self.file.unlock();
    }
}

impl Holder {
    fn this_process() -> Self {
        let mut words = std::env::args();
        let name = words.next().unwrap_or_default();
        let name = Path::new(&name).file_name().unwrap_or_default();
        let mut program = name.to_string_lossy().into_owned();
        // A subcommand such as `demo` is included. Other arguments may be secrets.
        if let Some(word) = words.next()
            && word.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            program = format!("{program} {word}");
        }
        Self {
            process: Some(std::process::id()),
            program: Some(program),
            since: Some(SystemClock.now().to_string()),
        }
    }

    fn text(&self) -> String {
        let process = self.process.unwrap_or_default();
        let program = self.program.as_deref().unwrap_or_default();
        let since = self.since.as_deref().unwrap_or_default();
        format!("{process}\n{program}\n{since}\n")
    }

    /// Reads the text about the holder, which may be incomplete, and the mark after it.
    fn read(file: &mut File) -> (Self, Option<Mark>) {
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        let mut lines = text.lines().map(str::to_owned);
        let mut line = || lines.next().filter(|line| !line.is_empty());
        let holder = Self {
            process: line().and_then(|line| line.parse().ok()),
            program: line(),
            since: line(),
        };
        (holder, Mark::find(text.as_bytes()))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => write!(f, "another process")?,
        }
        if let Some(program) = &self.program {
            write!(f, " ({program})")?;
        }
        if let Some(since) = &self.since {
            write!(f, " since {since}")?;
        }
        Ok(())
    }
}

fn lock_path(path: &Path) -> PathBuf {
    file::side_file(path, ".lock")
}

/// How often the lock is tried before it counts as taken.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);
