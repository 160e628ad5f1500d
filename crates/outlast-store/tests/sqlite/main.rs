//! What SQLite promises beyond the laws of stores: files, locks, rows, failures, recovery.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose setting cannot be made fails"
)]

mod dying;
mod failing;
mod file;
mod grouping;
mod ledger;
mod locking;
mod log;
mod opened;
mod previous;
mod reopening;
mod room;
mod rows;
