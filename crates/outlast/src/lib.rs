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
//!     let store = outlast::store::open_store(&"sqlite:tasks.db".parse()?, Default::default()).await?;
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
//! [`RunningServer::http_service`] is a tower service for your own axum router, `Server::rmcp` takes
//! an rmcp server unchanged (feature `rmcp`), [`detached`] gives work to a queue, and
//! [`gateway`] puts tasks in front of servers that you do not change.
//!
//! # A client
//!
//! ```no_run
//! use outlast::prelude::*;
//! use outlast::transport::http_client::HttpClientOptions;
//! use outlast::wire::Raw;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::http(HttpClientOptions::new("http://127.0.0.1:8050/mcp"));
//! let client = Client::connect(target, ClientOptions::default()).await?;
//! let arguments = Raw::parse(r#"{"pages": 3}"#.into())?;
//! let call = client.call_tool("render", Some(arguments)).await?;
//! println!("task {:?}", call.task().await);
//! println!("{:?}", call.outcome().await?);
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `schemars` (default) | [`Tool::typed`], `ToolContext::elicit` for Rust types |
//! | `rmcp` | `Server::rmcp`: rmcp servers with tasks |
//! | `postgres` | `postgres://…` as a store that several nodes share |
//!
//! # Where tasks are kept
//!
//! Without a store, tasks are in memory and end with the process. [`store::open_store`] opens
//! `sqlite:PATH`, which is compiled in and needs a C compiler, or `postgres://…`. A reply that names
//! a task is sent only after the store has confirmed it.
//!
//! # Versions and platforms
//!
//! The minimum supported Rust version is 1.95. The tests run on Linux. macOS and Windows are not
//! tested; child processes, their groups and the limit of open files use Unix functions.
//!
//! The crate uses no terminal and no home directory: those belong to the command line.

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
