//! Streamable HTTP: one endpoint, POST to speak; up to 2025-11-25 also GET to listen and DELETE to leave.
//!
//! Bytes and headers only. What a message means and on which stream it travels is the front's business;
//! here is who may come in, which session a request belongs to, and whether an answer is JSON or a stream.

mod answer;
mod answering;
mod connection;
mod cors;
mod delete;
mod get;
mod guard;
mod inward;
mod modern;
mod options;
mod post;
mod refused;
mod router;
mod server;
mod sessions;
mod sse;
mod stored;
mod within;

pub use options::{HttpOptions, Token};
pub use router::{Page, Pages};
pub use server::{HttpServer, serve, serve_all};
