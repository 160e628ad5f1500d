//! Streamable HTTP as a server: POST sends a message; up to 2025-11-25 GET opens a stream and
//! DELETE ends the session.
//!
//! The endpoint is a [`HttpService`], which a router such as axum's can mount. The listener is a
//! user of it. The health checks `/healthz` and `/readyz` need no token.
//!
//! This module decides which requests are admitted, and whether a response is JSON or a stream. The
//! server side interprets messages, and owns sessions and streams.

mod authenticate;
mod authority;
mod bodies;
mod callback;
mod connection;
mod cors;
mod delete;
mod descriptors;
mod fallback;
mod get;
mod guard;
mod health;
mod home;
mod lazy_timeout;
mod modern;
mod nodes;
mod options;
mod post;
mod rate;
mod rejection;
mod response;
mod router;
mod self_wake;
mod server;
mod service;
mod sse;

pub use authenticate::{Authenticate, BearerTokens, Token, Unauthenticated};
pub(crate) use callback::CallbackRoute;
pub use callback::CallbackService;
pub use descriptors::raise_open_file_limit;
pub use fallback::Fallback;
pub use nodes::NodeOptions;
pub use options::HttpOptions;
pub use response::{HttpResponse, Payload};
pub use router::{Page, Pages};
pub use server::{HttpServer, serve, serve_all};
pub use service::{HttpService, PeerAddress, service};
