//! V1 on stdio, message by message. Every message of the server is checked against the schema.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bad_input;
mod calls;
mod examples;
mod filters;
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
mod typed_input;
