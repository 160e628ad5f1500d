//! Any rmcp server, unchanged, with durable tasks.
//!
//! An rmcp [`ServerHandler`] defines tools, prompts and resources; this runs it in this process, one instance for each
//! session, or for each request of a client of 2026-07-28, which has none, behind a [`McpServer`](crate::server::McpServer) that
//! gives it tasks. The handler speaks to an ordinary MCP client of 2025-11-25 as far as it can tell: it elicits, samples, lists roots, reports progress and logs through its `peer`, and
//! sees the client's own capabilities and the head of its HTTP request.
//!
//! | the handler | what becomes of it |
//! |---|---|
//! | returns from a tool | the result of the call or of its task |
//! | `peer.create_elicitation`, `create_message`, `list_roots` | a question of the call in whose handler it was made; of the only call, if it was made in a task of its own; else it is refused |
//! | `peer.notify_progress` | progress of the call that brought the token |
//! | `peer.notify_logging_message` | a message of the only call that runs, else of the session |
//! | other notifications | passed on to the client |
//! | panics | error −32603 for that one call |
//! | hangs | its caller can cancel; it is dropped a while after it was told |
//!
//! A tool runs as a task if [`Rmcp::task`] says so, or if its definition carries
//! `_meta: {"outlast/taskSupport": "optional"}` (or `"required"`). A call is run again after a crash only if the tool's
//! annotations say that it is read-only or idempotent. rmcp's own tasks are not offered to the handler.
//!
//! ```no_run
//! # use rmcp::ServerHandler;
//! # #[derive(Clone)] struct MyServer;
//! # impl ServerHandler for MyServer {}
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::{Outlast, TaskSupport};
//!
//! let store = outlast::store::open_store(&"sqlite:tasks.db".parse()?, Default::default()).await?;
//! let outlast = Outlast::builder().store(store).build();
//! let server = outlast
//!     .rmcp(|| MyServer)
//!     .task("render_report", TaskSupport::Optional)
//!     .http("127.0.0.1:8040")
//!     .await?;
//! println!("{}", server.url());
//! # Ok(()) }
//! ```
//!
//! [`ServerHandler`]: ::rmcp::ServerHandler

mod asks;
mod catalogue;
mod channel;
mod connection;
mod guard;
mod messages;
mod notices;
mod place;
mod runner;
mod server;
mod service;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::rmcp::service::DynService;
use ::rmcp::{RoleServer, ServerHandler};
use outlast_wire::v1::TaskSupport;

use crate::server::ExtensionKey;

pub use server::RmcpServer;

/// An rmcp server: a [`Backend`](crate::server::Backend) for the server side and a
/// [`Runner`](outlast_engine::engine::Runner) for its engine, under [`RUNNER`](crate::server::RUNNER).
pub struct Rmcp {
    make: Box<dyn Fn() -> Box<dyn DynService<RoleServer>> + Send + Sync>,
    tasks: BTreeMap<String, TaskSupport>,
    patience: Duration,
    grace: Duration,
    keeper: ExtensionKey,
    runner: Arc<str>,
}

impl Rmcp {
    /// A server whose handlers `make` makes, one for each session, and one for each request outside of any.
    pub fn new<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(move || Box::new(make())),
            tasks: BTreeMap::new(),
            patience: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            keeper: ExtensionKey::new(),
            runner: crate::server::RUNNER.into(),
        }
    }

    /// The same, where this tool may or must run as a task, whatever its definition says.
    pub fn task(mut self, tool: &str, support: TaskSupport) -> Self {
        self.tasks.insert(tool.to_owned(), support);
        self
    }

    /// The same, where a handler has this long to begin and to list its tools. 10 s otherwise.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same, where a handler that was told to stop goes on for at most this long. 5 s otherwise.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}
