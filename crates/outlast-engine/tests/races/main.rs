//! Races: what several do to a task at once, in every order that the scheduler finds.
//!
//! Built with `RUSTFLAGS="--cfg shuttle"` only: `cargo xtask test races`. Time and the length of
//! pauses are whatever the scheduler makes of them, so that a deadline may come at any point.

#![cfg(shuttle)]
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

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
