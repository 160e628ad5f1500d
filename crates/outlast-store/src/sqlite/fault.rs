//! What SQLite's error codes mean for a store: who must act, and whether the connection can go on.

use std::io;

use outlast_engine::StoreError;
use outlast_engine::store::Reason;
use rusqlite::ErrorCode;

use super::probe::FailAs;

/// Why something could not be read or written.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The disk did not confirm: what the file holds is unknown until it is opened again.
    Io(Reason),
    /// There is no room.
    Full(Reason),
    /// Another program holds the file; nothing was changed.
    Busy(Reason),
    /// The file holds what nobody wrote.
    Damaged(Reason),
    /// This one thing cannot be stored; others can.
    Refused(Reason),
}

impl Fault {
    pub(super) fn reason(&self) -> Reason {
        let (Self::Io(reason)
        | Self::Full(reason)
        | Self::Busy(reason)
        | Self::Damaged(reason)
        | Self::Refused(reason)) = self;
        reason.clone()
    }

    /// Whether nothing more can be written until the file is opened again.
    pub(super) fn is_down(&self) -> bool {
        !matches!(self, Self::Full(_) | Self::Busy(_))
    }

    /// The fault as callers hear of it.
    pub(super) fn error(&self) -> StoreError {
        match self {
            Self::Damaged(reason) => StoreError::Corrupt(reason.clone()),
            Self::Io(reason) | Self::Full(reason) | Self::Busy(reason) | Self::Refused(reason) => {
                StoreError::Unavailable(reason.clone())
            }
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let reason = Reason::new(error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::from(FailAs::DiskFull),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(reason),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(reason),
            Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
                Self::Refused(reason)
            }
            // Whatever is not understood is treated as a disk that did not confirm.
            _ => Self::Io(reason),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::from(FailAs::DiskFull)
            }
            _ => Self::Io(Reason::new(error.to_string())),
        }
    }
}

impl From<FailAs> for Fault {
    fn from(fail: FailAs) -> Self {
        match fail {
            FailAs::FsyncError => Self::Io(Reason::new("the disk did not confirm a write")),
            FailAs::DiskFull => Self::Full(Reason::new(
                "disk full: new tasks are refused until there is room",
            )),
        }
    }
}
