//! The words of MCP tasks on the wire: envelope, shapes of both generations, codes, keys, headers.
//!
//! No clock, no I/O, no async runtime, no randomness. What a task *is* lives in `outlast-engine`.

pub mod codes;
pub mod envelope;
mod json;
pub mod object;
mod raw;
mod time;

pub use raw::{Raw, RawRef};
pub use time::{BadTimestamp, Timestamp};
