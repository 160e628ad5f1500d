//! Why a store could not be opened. An error never leaves a store file changed.

use std::io;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::path::PathBuf;

#[cfg(feature = "sqlite")]
use crate::sqlite::Holder;
use crate::url::StoreUrlError;

/// Why a store could not be opened. A file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text names no store.
    #[error(transparent)]
    Url(#[from] StoreUrlError),
    /// Another store has the file open, in this process or another.
    #[cfg(feature = "sqlite")]
    #[error("{} is in use by {holder}; stop it or choose another --store", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that has it open.
        holder: Holder,
    },
    /// A build from before the first release wrote the file.
    #[error(
        "{} was written by an outlast from before its first release, whose format this program does not read; \
         move it away and start again, or finish its tasks with that build",
        .path.display()
    )]
    Unreleased {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a store.
    #[error("{} is not an outlast store: {what}; choose another --store", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What the file is instead.
        what: String,
    },
    /// A newer version wrote the file.
    #[error(
        "{} has schema version {found}, this program supports versions up to {known}; use a newer outlast",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The newest version that this program supports.
        known: u32,
    },
    /// The file contains fewer commits than were acknowledged.
    #[error(
        "{} is incomplete: {acknowledged} commits were acknowledged and it contains {found} of them; its log was damaged or deleted, \
         or it was replaced by another copy. Restore a complete one, or delete {} to use it as it is",
        .path.display(), .lock.display()
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The file with the number of acknowledged commits.
        lock: PathBuf,
        /// The number of acknowledged commits.
        acknowledged: u64,
        /// The number of commits in the file.
        found: u64,
    },
    /// The content of the file is not what was written.
    #[error("{} is damaged: {what}; restore it from a backup or move it away", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// The operating system reported an error.
    #[error("cannot open {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// SQLite reported an error.
    #[cfg(feature = "sqlite")]
    #[error("cannot open {}: {source}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
    /// The store is not a file but a database, and the database cannot be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] crate::postgres::PostgresError),
}

#[cfg(feature = "sqlite")]
impl OpenError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }

    pub(crate) fn sqlite(path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.to_owned();
        |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                let what = source.to_string();
                Self::Corrupt { path, what }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    pub(crate) fn foreign(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self::Foreign { path, what }
    }

    pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self::Corrupt { path, what }
    }
}
