//! `kill -9` of the gateway in every state of a call, for every kind of client and server. After
//! the restart every guarantee holds, and no call ran twice that may not (P4, P5).
//!
//! The clients are those of the gateway's own tests. The gateway is the real program with its
//! SQLite store. The server is a process on a pipe or at a URL.

#![expect(clippy::unwrap_used, reason = "a failed setup stops the test")]

#[path = "../../../outlast/tests/gateway/cell.rs"]
#[expect(dead_code, reason = "the tests of the gateway use more of it")]
mod cell;
mod client;
#[path = "../serve/gateway.rs"]
#[expect(dead_code, reason = "the tests of `serve` use more of it")]
mod gateway;
mod harness;
#[path = "../launcher/outlast.rs"]
mod launcher;
mod run;
#[path = "../../../outlast/tests/gateway/scenario.rs"]
mod scenario;
mod states;
