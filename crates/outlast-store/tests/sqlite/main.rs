//! The guarantees of the SQLite store beyond the laws of stores: files, locks, rows, failures,
//! recovery.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose setting cannot be made fails"
)]

mod backup;
mod damage;
mod dying;
mod failing;
mod file;
mod grouping;
mod locking;
mod log;
mod moved;
mod opened;
mod reading;
mod reopening;
mod room;
mod rows;
mod unreleased;
