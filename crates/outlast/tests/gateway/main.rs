//! The gateway between clients and servers of every kind, with our own server behind it or one that the test plays.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod caller;
mod cell;
mod cells;
mod crashes;
mod eras;
mod events;
mod gate;
mod held;
mod hops;
mod keys;
mod known;
mod limits;
mod outside;
mod owners;
mod passing;
mod playing;
mod product;
mod questions;
mod reports;
mod rules;
#[path = "../client/stage.rs"]
#[expect(dead_code, reason = "the tests of the client use more of it")]
mod scripted;
mod tickets;
mod trace;
mod undelivered;
mod upstream;
