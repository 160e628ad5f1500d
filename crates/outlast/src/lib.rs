//! Durable MCP tasks for Rust programs.
//!
//! A *task* is a tool call that the server stores under an id. The client can disconnect, the
//! process can be killed; the client comes back with the id and gets the status and the result. MCP
//! has two kinds of tasks: the utility of 2025-11-25 and the extension of 2026-07-28. You write a
//! tool once, and clients of both kinds, and clients without tasks, can call it.
//!
//! # A server
//!
//! ```no_run
//! use outlast::prelude::*;
//! use outlast::schemars::{self, JsonSchema};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Render {
//!     /// How many pages to draw.
//!     pages: u32,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let render = Tool::typed("render", "Draws pages", |args: Render, cx| async move {
//!         for page in 1..=args.pages {
//!             tokio::time::sleep(std::time::Duration::from_secs(1)).await;
//!             cx.progress(page.into(), args.pages.into());
//!         }
//!         Ok(text("done"))
//!     });
//!     let store = outlast::store::open("sqlite:tasks.db").await?;
//!     let server = Server::builder("reports", "1.0")
//!         .store(store)
//!         .tool(render.task(TaskSupport::Optional).hints(Hints::READ_ONLY))
//!         .build();
//!     let server = server.serve_http("127.0.0.1:8050").await?; // or `serve_stdio`
//!     tokio::signal::ctrl_c().await?;
//!     Ok(server.shutdown().await?)
//! }
//! ```
//!
//! After a crash, a tool runs again only if a hint says that this is safe: read-only or idempotent.
//! Otherwise its task ends with an error that says that the outcome is unknown.
//!
//! [`RunningServer::http_service`] is a tower service for your own axum router, `Server::rmcp`
//! takes an rmcp server unchanged (feature `rmcp`), [`detached`] gives work to a queue, and
//! [`gateway`] puts tasks in front of servers that you do not change.
//!
//! # A client
//!
//! ```no_run
//! use outlast::prelude::*;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::url("http://127.0.0.1:8050/mcp");
//! let client = Client::connect(target, ClientOptions::default()).await?;
//! let call = client.call_tool("render", serde_json::json!({ "pages": 3 })).await?;
//! println!("task {:?}", call.task().await);
//! println!("{}", call.result().await?.text());
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `server` (default) | [`Server`], [`tools`], [`prompts`], [`resources`], [`detached`]; stdio |
//! | `client` (default) | [`client`]: calls and input requests, over HTTP or with child processes |
//! | `http` (default) | the HTTP endpoint of servers |
//! | `tls` (default) | `https` URLs for clients |
//! | `gateway` (default) | [`gateway`]: tasks in front of servers that you do not change |
//! | `schemars` (default) | [`Tool::typed`], `ToolContext::elicit` for Rust types |
//! | `sqlite` (default) | `sqlite:PATH` as a store |
//! | `postgres` | `postgres://…` as a store that several nodes share |
//! | `rmcp` | `Server::rmcp`: rmcp servers with tasks |
//!
//! `sqlite`, `tls` and `postgres` need a C compiler (SQLite and the cryptography of ring); the
//! other features do not.
//!
//! # Where tasks are kept
//!
//! Without a store, tasks are in memory and end with the process. [`store::open`] opens
//! `sqlite:PATH` or `postgres://…`. A reply that names a task is sent only after the store has
//! confirmed it.
//!
//! # Versions and platforms
//!
//! The minimum supported Rust version is 1.95. The tests run on Linux. macOS and Windows are not
//! tested; child processes, their groups and the limit of open files use Unix functions.
//!
//! The crate uses no terminal and no home directory: those belong to the command line.

#![cfg_attr(
    not(all(
        feature = "client",
        feature = "gateway",
        feature = "http",
        feature = "rmcp",
        feature = "server"
    )),
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "parts of one feature can be unused without another"
    )
)]

#[cfg(any(feature = "client", feature = "server"))]
mod annotations;
#[cfg(feature = "server")]
mod broadcaster;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
mod completion;
#[cfg(feature = "server")]
pub mod content;
#[cfg(feature = "server")]
pub mod detached;
pub mod engine;
#[cfg(any(feature = "client", feature = "server"))]
mod engine_errors;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(any(feature = "client", feature = "server"))]
mod input_capabilities;
#[cfg(any(feature = "client", feature = "server"))]
mod input_check;
#[cfg(feature = "server")]
mod local_server;
#[cfg(feature = "server")]
mod local_tools;
#[cfg(any(feature = "client", feature = "server"))]
mod log_limit;
#[cfg(feature = "server")]
mod outlast;
pub mod prelude;
#[cfg(feature = "server")]
pub mod prompts;
#[cfg(feature = "server")]
pub mod resources;
#[cfg(feature = "rmcp")]
pub mod rmcp;
#[cfg(feature = "server")]
mod running_server;
#[cfg(any(feature = "client", feature = "server"))]
mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
mod server_builder;
#[cfg(feature = "server")]
mod server_error;
#[cfg(feature = "server")]
mod shared_store;
#[cfg(any(feature = "client", feature = "server"))]
mod sleep;
pub mod store;
pub mod task;
#[cfg(feature = "server")]
pub mod tools;
#[cfg(any(feature = "client", feature = "server"))]
pub mod transport;
#[cfg(feature = "gateway")]
pub mod webhook;
pub mod wire;

#[cfg(feature = "server")]
pub use completion::CompletionInput;
#[cfg(feature = "server")]
pub use local_server::LocalServer;
#[cfg(all(feature = "schemars", feature = "server"))]
pub use local_tools::Json;
#[cfg(feature = "server")]
pub use local_tools::{Tool, ToolContext, Tools, current, text};
#[cfg(feature = "gateway")]
pub use outlast::{Outlast, OutlastBuilder};
pub use outlast_wire::log::Level;
pub use outlast_wire::v1::TaskSupport;
#[cfg(feature = "http")]
pub use running_server::ServerHandle;
#[cfg(feature = "server")]
pub use running_server::{RunningServer, Server};
#[cfg(feature = "schemars")]
pub use schemars;
#[cfg(feature = "server")]
pub use server_builder::ServerBuilder;
#[cfg(feature = "server")]
pub use server_error::ServerError;
#[cfg(feature = "server")]
pub use shared_store::complete;

/// The guides, as in the repository. `cargo test --doc` compiles their Rust code.
#[cfg(any(
    doc,
    all(
        doctest,
        feature = "gateway",
        feature = "rmcp",
        feature = "schemars",
        feature = "sqlite"
    )
))]
pub mod manual {
    #[doc = include_str!("../manual/generations.md")]
    pub mod generations {}
    #[doc = include_str!("../manual/limits.md")]
    pub mod limits {}
    #[doc = include_str!("../manual/promises.md")]
    pub mod promises {}
    #[doc = include_str!("../manual/start-client.md")]
    pub mod start_client {}
    #[doc = include_str!("../manual/start-gateway.md")]
    pub mod start_gateway {}
    #[doc = include_str!("../manual/start-server.md")]
    pub mod start_server {}
    #[doc = include_str!("../manual/storage.md")]
    pub mod storage {}
}
