//! The gateway: durable tasks for any client, in front of any MCP server.
//!
//! An [`Upstream`] is a [`Backend`](crate::server::Backend) for the server side and a
//! [`Runner`](outlast_engine::engine::Runner) for the engine, as the tools of this process are. The
//! engine runs each request of a client as a call. The call sends its request to the upstream
//! through the [client side](crate::client), which handles the upstream's generation.
//!
//! | where | what |
//! |---|---|
//! | `settings` | the settings of an upstream and of its tools |
//! | `access` | which tools a caller may use, and its credentials at the upstream |
//! | `pool`, `connection` | a connection for each owner and set of input kinds, open while needed |
//! | `active_calls`, `listeners` | the active calls of a connection, and the clients that use it |
//! | `admission` | how many calls can be open, in total and for each owner |
//! | `probe` | whether the upstream can be reached, before a client needs it |
//! | `input_requests`, `url_elicitation` | input requests and url elicitations of the upstream |
//! | `notifications` | notifications of the upstream |
//! | `catalogue`, `list` | its tools: how they can be called, and how they are listed |
//! | `backend`, `runner` | what the server side uses, and what runs its calls |
//! | `upstream_call`, `call`, `controller` | one call from its preparation to its end |
//! | `reattach` | resumes a task of the upstream after a restart |
//! | `result`, `errors` | a response of the upstream as our client gets it |
//! | `known_clients` | how long known clients wait for a response |
//! | `gateway`, `endpoints` | several upstreams on one store, each at its own endpoint |
//! | `late_upstreams` | recovered tasks whose upstream is added after the start |
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::Outlast;
//! use outlast::client::Target;
//! use outlast::gateway::{Settings, Upstream};
//! use outlast::transport::child::ChildOptions;
//!
//! let target = Target::child(ChildOptions::new("npx").args(["-y", "some-server"]));
//! let upstream = Upstream::new("files", target, Settings::default());
//! let server = Outlast::builder().build().upstream(upstream).serve_http("127.0.0.1:8040").await?;
//! println!("{}", server.url());
//! # Ok(()) }
//! ```

mod access;
mod active_calls;
mod admission;
mod backend;
mod call;
mod catalogue;
mod connection;
mod controller;
mod endpoints;
mod errors;
#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod gateway;
mod input_requests;
mod known_clients;
mod late_upstreams;
mod list;
mod listeners;
mod notifications;
mod pool;
mod probe;
mod reattach;
mod result;
mod runner;
mod settings;
mod upstream_call;
mod url_elicitation;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::broadcaster::Broadcaster;
use crate::client::{Era, Target};
use crate::transport::child_registry::ChildRegistry;
use admission::OpenCalls;
use connection::ConnectSpec;
use outlast_engine::{Owner, SizeLimits};
use pool::Pool;
use probe::ProbeState;

pub use access::{PrincipalSettings, ToolLists, ToolPattern};
pub use connection::UnreachableError;
pub use endpoints::{UpstreamEndpoint, UpstreamEndpoints};
pub use gateway::{Gateway, RunningGateway, policy};
pub use settings::{Isolate, Settings, TaskMode, ToolSettings};

/// An upstream server, served as if it were part of this process.
pub struct Upstream {
    name: Arc<str>,
    target: Target,
    settings: Settings,
    runner: Arc<str>,
    pool: Pool,
    broadcaster: Arc<Broadcaster>,
    limits: ConcurrencyLimits,
    open_calls: OpenCalls,
    /// Set when a probe failed. Cleared by the first successful connection.
    probe_failed: Arc<AtomicBool>,
    probes: ProbeState,
}

/// Limits on concurrent calls, for all tools and for each tool.
struct ConcurrencyLimits {
    all: Option<Arc<Semaphore>>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Permits of one running call: of the upstream, and of the tool.
type ConcurrencyPermits = [Option<OwnedSemaphorePermit>; 2];

impl Upstream {
    /// An upstream at `target`. The name must stay the same over restarts: the tasks are stored
    /// under it.
    pub fn new(name: impl Into<Arc<str>>, target: Target, settings: Settings) -> Self {
        let name: Arc<str> = name.into();
        Self {
            runner: format!("upstream:{name}").into(),
            name,
            target,
            pool: Pool::default(),
            broadcaster: Arc::default(),
            limits: ConcurrencyLimits {
                all: settings
                    .concurrency
                    .map(|most| Arc::new(Semaphore::new(most))),
                each: Mutex::default(),
            },
            open_calls: OpenCalls::default(),
            probe_failed: Arc::default(),
            probes: ProbeState::default(),
            settings,
        }
    }

    /// Applies the size limits of the gateway. The processes of the upstream are recorded in
    /// `registry`.
    fn configured(mut self, registry: Option<&ChildRegistry>, sizes: &SizeLimits) -> Self {
        self.target = self.target.with_payload(sizes.payload_bytes);
        if let Some(registry) = registry {
            self.target = self.target.with_child_registry(registry);
        }
        self
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The name of its runner.
    pub fn runner(&self) -> &Arc<str> {
        &self.runner
    }

    /// Closes all connections and waits until they are closed.
    pub async fn close(&self) {
        for connection in self.pool.take_all() {
            // BD-20: calls that end with the gateway are cancelled at the upstream first.
            connection.wait_until_idle(runner::CLEANUP_TIMEOUT).await;
            connection.upstream.close().await;
        }
    }

    /// Whether the last attempt to connect failed.
    pub fn is_failing(&self) -> bool {
        self.probe_failed.load(Ordering::Relaxed) || self.pool.is_failing()
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.pool.len()
    }

    /// How to connect in `era` for `owner`.
    fn connect_spec(&self, era: Era, owner: &Owner) -> ConnectSpec {
        let target = self.target.clone();
        let target = match self.settings.principal(owner) {
            Some(own) => target.with_credentials(&own.headers, &own.env),
            None => target,
        };
        ConnectSpec {
            name: self.name.clone(),
            target,
            era,
            handshake: self.settings.handshake_timeout,
            broadcaster: self.broadcaster.clone(),
        }
    }

    /// The permits that are free, for a call of `tool` that runs already.
    fn free_permits(&self, tool: Option<&str>) -> ConcurrencyPermits {
        let all = self.limits.all.clone();
        let each = tool.and_then(|tool| self.limits.of_tool(tool, &self.settings));
        [all, each].map(|limit| limit?.try_acquire_owned().ok())
    }

    /// Waits until a call of `tool` can start.
    async fn acquire_permits(&self, tool: Option<&str>) -> ConcurrencyPermits {
        let all = match &self.limits.all {
            Some(all) => all.clone().acquire_owned().await.ok(),
            None => None,
        };
        let each = match tool.and_then(|tool| self.limits.of_tool(tool, &self.settings)) {
            Some(each) => each.acquire_owned().await.ok(),
            None => None,
        };
        [all, each]
    }
}

impl ConcurrencyLimits {
    fn of_tool(&self, tool: &str, settings: &Settings) -> Option<Arc<Semaphore>> {
        let most = settings.tools.get(tool)?.concurrency?;
        let mut each = self.each.lock();
        let place = each.entry(tool.to_owned());
        Some(
            place
                .or_insert_with(|| Arc::new(Semaphore::new(most)))
                .clone(),
        )
    }
}
