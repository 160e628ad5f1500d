//! The gateway between clients and servers of every kind. The server is our own or scripted.

#![expect(clippy::unwrap_used, reason = "a test may panic if its setup fails")]

mod cached_state;
mod caller;
mod cell;
mod crashes;
mod eras;
mod events;
mod gate;
mod harness;
mod hops;
mod input_keys;
mod input_requests;
mod limits;
mod matrix;
mod outside_calls;
mod owners;
mod passthrough;
mod product;
mod reports;
mod rules;
mod scenario;
#[path = "../client/harness.rs"]
#[expect(dead_code, reason = "the tests of the client use more of it")]
mod scripted;
mod session_preferences;
mod tickets;
mod trace;
mod undelivered;
