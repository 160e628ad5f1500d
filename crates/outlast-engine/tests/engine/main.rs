//! What an engine does, seen from outside, on the memory store under paused time.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod bad_input;
mod cancel;
mod expiry;
mod harness;
mod input;
mod lifecycle;
mod nodes;
mod promotion;
mod recovery;
mod shutdown;
mod starting;
