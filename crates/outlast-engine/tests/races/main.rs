//! Races: concurrent operations on a task, in every order that the scheduler finds.
//!
//! Built only with `RUSTFLAGS="--cfg shuttle"`: `cargo xtask test races`. The scheduler decides how
//! long a pause takes, so that a deadline may pass at any point.

#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a failed setup stops the test")]

mod cancel;
mod creation;
mod expiry;
mod harness;
mod input;
mod interleaved_store;
mod lost_replies;
mod nodes;
mod promotion;
mod shutdown;
mod tools;
mod watching;
