//! The meaning of SQLite's error codes for a store, and whether the connection can still be used.

use outlast_engine::StoreError;
use outlast_engine::store::Reason;
use rusqlite::ErrorCode;

use super::failpoint::DiskFailure;

/// Why a read or write failed.
#[derive(Clone, Debug)]
pub(super) enum FileFault {
    /// A write or a sync failed: the content of the file is unknown until it is opened again.
    Io(Reason),
    /// There is no space.
    Full(Reason),
    /// Another program has the file locked. Nothing was changed.
    Busy(Reason),
    /// The content of the file is not what was written.
    Damaged(Reason),
    /// A row is not where it was written: another program changed the file.
    Missing(Reason),
    /// A file of the store was deleted or replaced while it was open.
    Replaced(Reason),
    /// This value cannot be stored. Other values can.
    Refused(Reason),
}

impl FileFault {
    pub(super) fn reason(&self) -> Reason {
        let (Self::Io(reason)
        | Self::Full(reason)
        | Self::Busy(reason)
        | Self::Damaged(reason)
        | Self::Missing(reason)
        | Self::Replaced(reason)
        | Self::Refused(reason)) = self;
        reason.clone()
    }

    /// The error for callers.
    pub(super) fn error(&self) -> StoreError {
        match self {
            Self::Damaged(reason) | Self::Missing(reason) => StoreError::Corrupt(reason.clone()),
            Self::Io(reason)
            | Self::Full(reason)
            | Self::Busy(reason)
            | Self::Replaced(reason)
            | Self::Refused(reason) => StoreError::Unavailable(reason.clone()),
        }
    }
}

impl From<rusqlite::Error> for FileFault {
    fn from(error: rusqlite::Error) -> Self {
        let reason = Reason::new(error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::from(DiskFailure::Full),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(reason),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(reason),
            Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
                Self::Refused(reason)
            }
            // An unknown code is treated like a failed sync.
            _ => Self::Io(reason),
        }
    }
}

impl From<DiskFailure> for FileFault {
    fn from(failure: DiskFailure) -> Self {
        match failure {
            DiskFailure::SyncError => Self::Io(Reason::new("the disk did not confirm a write")),
            DiskFailure::Full => Self::Full(Reason::new(
                "disk full: new tasks are refused until there is space",
            )),
        }
    }
}
