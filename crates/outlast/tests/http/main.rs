//! Streamable HTTP, with a client that writes its own bytes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod attacks;
mod cors;
mod crash;
mod detached;
mod harness;
mod health;
mod input_requests;
mod misbehaving_clients;
mod mounted;
mod nodes;
mod principals;
mod rate_limits;
mod redis_queue;
mod rejections;
mod responses;
mod restart;
mod resume;
mod seeds;
mod session_limits;
mod sessions;
mod slow_clients;
mod starting;
mod streams;
mod tasks_server;
