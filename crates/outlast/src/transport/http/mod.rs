//! Streamable HTTP: one endpoint, POST to speak; up to 2025-11-25 also GET to listen and DELETE to leave.
//!
//! Beside the endpoint are the health checks `/healthz` and `/readyz`, which need no token.
//!
//! Bytes and headers only. What a message means, which sessions there are and on which stream a message travels is the
//! business of `front`; here is which requests are admitted, and whether a response is JSON or a stream.

mod answer;
mod authority;
mod bodies;
mod connection;
mod cors;
mod delete;
mod descriptors;
mod get;
mod guard;
mod health;
mod inward;
mod modern;
mod options;
mod post;
mod rate;
mod refused;
mod router;
mod server;
mod sse;
mod within;

pub use descriptors::raise_open_file_limit;
pub use options::{HttpOptions, Token};
pub use router::{Page, Pages};
pub use server::{HttpServer, serve, serve_all};
