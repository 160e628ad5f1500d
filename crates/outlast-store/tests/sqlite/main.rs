//! The guarantees of the SQLite store beyond the laws of stores: files, locks, rows, failures,
//! recovery.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose setting cannot be made fails"
)]

mod backup;
mod batches;
mod crash;
mod damage;
mod failing;
mod file;
mod harness;
mod locking;
mod log;
mod reading;
mod reopening;
mod replaced_files;
mod rows;
mod space;
mod unreleased;
mod upgrade;
