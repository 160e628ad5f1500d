//! Conversations in V1 on a pipe, message by message. Every result we send is held against the schema.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod bad_input;
mod calls;
mod examples;
mod handshake;
mod harness;
mod input_requests;
mod logging;
mod middleware;
mod prompts;
mod receiver;
mod resources;
mod seeds;
mod tasks;
