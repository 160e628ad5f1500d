//! Why a store file could not be opened or copied. No variant leaves the file changed.

use std::io;
use std::path::{Path, PathBuf};

use super::lock::Holder;

/// Why a store file could not be opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another store, in this process or another, has it open.
    #[error("{} is in use by {holder}; stop it or choose another --store", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that has it open.
        holder: Holder,
    },
    /// A build from before the first release wrote it.
    #[error(
        "{} was written by an outlast from before its first release, whose format this program does not read; \
         move it away and start again, or finish its tasks with that build",
        .path.display()
    )]
    Unreleased {
        /// The file.
        path: PathBuf,
    },
    /// The path leads to something else.
    #[error("{} is not an outlast store: {what}; choose another --store", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// A newer version wrote it.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}; use a newer outlast",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// It holds fewer commits than were acknowledged.
    #[error(
        "{} is incomplete: {acknowledged} commits were acknowledged and it holds {found} of them; its log was damaged or deleted, \
         or it was replaced by another copy. Restore a complete one, or delete {} to use it as it is",
        .path.display(), .lock.display()
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The file that remembers the acknowledged commits.
        lock: PathBuf,
        /// How many commits were acknowledged.
        acknowledged: u64,
        /// How many it holds.
        found: u64,
    },
    /// Its contents are not what was written.
    #[error("{} is damaged: {what}; restore it from a backup or move it away", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The operating system refuses.
    #[error("cannot open {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// SQLite refuses.
    #[error("cannot open {}: {source}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }

    pub(super) fn sqlite(path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.to_owned();
        |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                let what = source.to_string();
                Self::Corrupt { path, what }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    pub(super) fn foreign(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self::Foreign { path, what }
    }

    pub(super) fn corrupt(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self::Corrupt { path, what }
    }
}
