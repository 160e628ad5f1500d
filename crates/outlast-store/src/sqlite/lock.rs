//! One process per file: a lock beside it that dies with its holder and names it.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use outlast_engine::{Clock, SystemClock};

use super::error::OpenError;
use super::file;

/// The right to use a file. Given up when dropped, or by the operating system when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

/// Who has a file open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The number of its process.
    pub process: Option<u32>,
    /// What it is called.
    pub program: Option<String>,
    /// When it opened the file.
    pub since: Option<String>,
}

impl Lock {
    /// Takes the lock of the store at `path`, or says who has it.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = beside(path);
        let mut file = file::open_private(&lock).map_err(OpenError::io(&lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse {
                    path: path.to_owned(),
                    holder: Holder::read(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(OpenError::io(&lock)(error)),
        }
        Holder::this_process()
            .write(&mut file)
            .map_err(OpenError::io(&lock))?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: whoever waits for it must find the same one. What it said is over.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

impl Holder {
    fn this_process() -> Self {
        let mut words = std::env::args();
        let name = words.next().unwrap_or_default();
        let name = Path::new(&name).file_name().unwrap_or_default();
        let mut program = name.to_string_lossy().into_owned();
        // A command such as `demo` helps; anything else on the command line may be a secret.
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

    fn write(&self, file: &mut File) -> std::io::Result<()> {
        file.set_len(0)?;
        file.rewind()?;
        let process = self.process.unwrap_or_default();
        let program = self.program.as_deref().unwrap_or_default();
        let since = self.since.as_deref().unwrap_or_default();
        file.write_all(format!("{process}\n{program}\n{since}\n").as_bytes())
    }

    /// What the holder wrote about itself; nothing if it has not come to that.
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        let mut lines = text.lines().map(str::to_owned);
        Self {
            process: lines.next().and_then(|line| line.parse().ok()),
            program: lines.next(),
            since: lines.next(),
        }
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

fn beside(path: &Path) -> PathBuf {
    file::beside(path, ".lock")
}
