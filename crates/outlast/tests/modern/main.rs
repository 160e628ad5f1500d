//! MCP 2026-07-28 on stdio and over HTTP, message by message. Every message of the server is
//! checked against the schemas of the protocol and of the tasks extension.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod capabilities;
mod delivery;
mod eras;
mod filters;
mod harness;
mod headers;
mod http_client;
mod listen;
mod mixed_eras;
mod mrtr;
mod owners;
mod restart;
mod rmcp_client;
mod schema;
mod stdio_client;
mod streams;
mod tasks;
