//! Durable MCP tasks for Rust programs.
//!
//! The library crate: tools that run as tasks, the server side, the client side and the gateway,
//! all on the same [`engine`]. It uses no terminal and no home directory: those belong to the
//! command line.

mod annotations;
mod broadcaster;
pub mod client;
mod completion;
pub mod content;
pub mod detached;
pub mod gateway;
mod input_check;
mod local_server;
mod log_limit;
mod outlast;
pub mod prelude;
pub mod prompts;
pub mod resources;
#[cfg(feature = "rmcp")]
pub mod rmcp;
mod running_server;
mod schema;
pub mod server;
mod server_builder;
mod server_error;
mod sleep;
pub mod tools;
pub mod transport;

pub use outlast_engine as engine;
pub use outlast_store as store;
pub use outlast_wire as wire;

pub use completion::CompletionInput;
pub use local_server::LocalServer;
pub use outlast::{Outlast, OutlastBuilder};
pub use outlast_wire::log::Level;
pub use outlast_wire::v1::TaskSupport;
pub use running_server::{RunningServer, Server, ServerHandle};
#[cfg(feature = "schemars")]
pub use schemars;
pub use server_builder::ServerBuilder;
pub use server_error::ServerError;
#[cfg(feature = "schemars")]
pub use tools::Json;
pub use tools::{Tool, ToolContext, Tools, current, text};

/// The Rust code of the documents: `cargo test --doc` compiles it.
#[cfg(all(doctest, feature = "rmcp", feature = "schemars"))]
mod documents {
    #[doc = include_str!("../../../docs/generations.md")]
    struct Generations;
    #[doc = include_str!("../../../docs/start-client.md")]
    struct StartClient;
    #[doc = include_str!("../../../docs/start-server.md")]
    struct StartServer;
}
