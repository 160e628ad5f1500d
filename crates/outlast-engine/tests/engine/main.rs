//! The behaviour of an engine through its public interface, on the memory store with a paused
//! clock.

#![expect(clippy::unwrap_used, reason = "a failed setup stops the test")]

mod bad_input;
mod cancel;
mod detached;
mod expiry;
mod harness;
mod input;
mod lifecycle;
mod nodes;
mod promotion;
mod recovery;
mod retention;
mod shutdown;
mod starting;
mod status_records;
