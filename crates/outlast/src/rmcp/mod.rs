//! Durable tasks for any rmcp server, without changes to the server.
//!
//! An rmcp [`ServerHandler`] defines tools, prompts and resources. This module runs it in this
//! process, behind an [`McpServer`](crate::server::McpServer) that adds tasks: one instance for
//! each session, or for each request of a client of 2026-07-28, which has no session. To the
//! handler, the client is an ordinary MCP client of 2025-11-25: the handler elicits, samples, lists
//! roots, reports progress and logs through its `peer`, and gets the client's capabilities and the
//! head of its HTTP request.
//!
//! | the handler | result |
//! |---|---|
//! | returns from a tool | the result of the call or of its task |
//! | `peer.create_elicitation`, `create_message`, `list_roots` | an input request of its call |
//! | the same from a spawned task | an input request of the only running call, else rejected |
//! | `peer.notify_progress` | progress of the call with that token |
//! | `peer.notify_logging_message` | a log message of the only running call, else of the session |
//! | other notifications | forwarded to the client |
//! | panics | error −32603 for that one call |
//! | hangs | the caller can cancel the call; the handler is dropped after a grace period |
//!
//! A tool runs as a task if [`Rmcp::task`] names it, or if its definition contains `_meta:
//! {"outlast/taskSupport": "optional"}` (or `"required"`). After a crash a call is run again only
//! if the tool's annotations say that it is read-only or idempotent. rmcp's own tasks are not
//! available to the handler.
//!
//! ```no_run
//! # use rmcp::ServerHandler;
//! # #[derive(Clone)] struct MyServer;
//! # impl ServerHandler for MyServer {}
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::prelude::*;
//!
//! let store = outlast::store::open("sqlite:tasks.db").await?;
//! let server = Server::rmcp(|| MyServer)
//!     .task("render_report", TaskSupport::Optional)
//!     .store(store)
//!     .build()
//!     .serve_http("127.0.0.1:8040")
//!     .await?;
//! println!("{}", server.url());
//! # Ok(()) }
//! ```
//!
//! [`ServerHandler`]: ::rmcp::ServerHandler

mod backend;
mod catalogue;
mod channel;
mod guard;
mod handler_slot;
mod input_requests;
mod messages;
mod notifications;
mod runner;
mod running_handler;
mod server;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::rmcp::service::DynService;
use ::rmcp::{RoleServer, ServerHandler};
use outlast_wire::v1::TaskSupport;

use crate::server::ExtensionKey;

/// An rmcp server: a [`Backend`](crate::server::Backend) for the server side and a
/// [`Runner`](outlast_engine::engine::Runner) for its engine.
pub struct Rmcp {
    make: Box<dyn Fn() -> Box<dyn DynService<RoleServer>> + Send + Sync>,
    tasks: BTreeMap<String, TaskSupport>,
    start_timeout: Duration,
    grace_period: Duration,
    extension_key: ExtensionKey,
    runner: Arc<str>,
}

impl Rmcp {
    /// A server whose handlers `make` creates, one for each session, and one for each request
    /// without a session.
    pub fn new<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(move || Box::new(make())),
            tasks: BTreeMap::new(),
            start_timeout: Duration::from_secs(10),
            grace_period: Duration::from_secs(5),
            extension_key: ExtensionKey::new(),
            runner: crate::server::RUNNER.into(),
        }
    }

    /// Sets whether a tool can or must run as a task. It takes precedence over the tool's
    /// definition.
    pub fn task(mut self, tool: &str, support: TaskSupport) -> Self {
        self.tasks.insert(tool.to_owned(), support);
        self
    }

    /// Sets the timeout for a handler to start and to list its tools. The default is 10 s.
    pub fn start_timeout(mut self, start_timeout: Duration) -> Self {
        self.start_timeout = start_timeout;
        self
    }

    /// Sets how long a handler may continue after its cancellation before it is dropped. The
    /// default is 5 s.
    pub fn grace_period(mut self, grace_period: Duration) -> Self {
        self.grace_period = grace_period;
        self
    }
}
