//! Conversations in V1 on a pipe, message by message. Every result we send is held against the schema.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop where its stage is not as it should be"
)]

mod asks;
mod bad_input;
mod calls;
mod client;
mod examples;
mod filters;
mod handshake;
mod logging;
mod prompts;
mod receiver;
mod resources;
mod seeds;
mod tasks;
