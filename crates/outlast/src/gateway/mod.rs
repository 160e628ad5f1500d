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
//! | `pool`, `connection` | one connection for each owner and set of input kinds, open while it is needed |
//! | `active_calls`, `listeners` | the active calls of a connection, and the clients that use it |
//! | `admission` | how many calls can be open, in total and for each owner |
//! | `probe` | whether the upstream can be reached, before a client needs it |
//! | `asks`, `pages`, `notices` | input requests, url elicitations and notifications of the upstream |
//! | `catalogue`, `list` | its tools: how they can be called, and how they are listed |
//! | `backend`, `runner` | what the server side uses, and what runs its calls |
//! | `prepared`, `follow`, `owner` | one call from its preparation to its end |
//! | `again` | resumes a task of the upstream after a restart |
//! | `result`, `errors` | a response of the upstream as our client gets it |
//! | `patience` | how long known clients wait for a response |
//! | `assembly`, `served` | several upstreams on one store, each at its own endpoint |
//! | `late` | recovered tasks whose upstream is added after the start |
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
//! let server = Outlast::builder().build().upstream(upstream).http("127.0.0.1:8040").await?;
//! println!("{}", server.url());
//! # Ok(()) }
//! ```

mod active_calls;
mod admission;
mod again;
mod asks;
mod assembly;
mod backend;
mod catalogue;
mod connection;
mod errors;
mod follow;
mod late;
mod list;
mod listeners;
mod notices;
mod owner;
mod pages;
mod patience;
mod pool;
mod prepared;
mod probe;
mod result;
mod runner;
mod served;
mod settings;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::{Era, Target};
use crate::fronts::Fronts;
use crate::transport::register::Register;
use admission::OpenCalls;
use connection::Way;
use outlast_engine::SizeLimits;
use pool::Pool;
use probe::Probing;

pub use assembly::{Gateway, RunningGateway, policy};
pub use served::{Served, ServedUpstreams};
pub use settings::{Isolate, Settings, TaskMode, ToolSettings};

/// An upstream server, served as if it were part of this process.
pub struct Upstream {
    name: Arc<str>,
    target: Target,
    settings: Settings,
    runner: Arc<str>,
    pool: Pool,
    fronts: Arc<Fronts>,
    turns: Turns,
    open_calls: OpenCalls,
    /// Set when a probe failed. Cleared by the first successful connection.
    unmet: Arc<AtomicBool>,
    probing: Probing,
}

/// Limits on concurrent calls, for all tools and for each tool.
struct Turns {
    all: Option<Arc<Semaphore>>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Permits of one running call: of the upstream, and of the tool.
type Turn = [Option<OwnedSemaphorePermit>; 2];

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
            fronts: Arc::default(),
            turns: Turns {
                all: settings
                    .concurrency
                    .map(|most| Arc::new(Semaphore::new(most))),
                each: Mutex::default(),
            },
            open_calls: OpenCalls::default(),
            unmet: Arc::default(),
            probing: Probing::default(),
            settings,
        }
    }

    /// Applies the size limits of the gateway. The processes of the upstream are recorded in
    /// `register`.
    fn assembled(mut self, register: Option<&Register>, sizes: &SizeLimits) -> Self {
        self.target = self.target.with_payload(sizes.payload_bytes);
        if let Some(register) = register {
            self.target = self.target.with_child_register(register);
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
            connection.quiet(runner::TIDY_UP).await;
            connection.back.close().await;
        }
    }

    /// Whether the last attempt to connect failed.
    pub fn is_failing(&self) -> bool {
        self.unmet.load(Ordering::Relaxed) || self.pool.is_failing()
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.pool.len()
    }

    /// How to connect in `era`.
    fn way(&self, era: Era) -> Way {
        Way {
            name: self.name.clone(),
            target: self.target.clone(),
            era,
            handshake: self.settings.handshake,
            fronts: self.fronts.clone(),
        }
    }

    /// The permits that are free, for a call of `tool` that runs already.
    fn turn_if_free(&self, tool: Option<&str>) -> Turn {
        let all = self.turns.all.clone();
        let each = tool.and_then(|tool| self.turns.of(tool, &self.settings));
        [all, each].map(|turns| turns?.try_acquire_owned().ok())
    }

    /// Waits until a call of `tool` can start.
    async fn turn(&self, tool: Option<&str>) -> Turn {
        let all = match &self.turns.all {
            Some(all) => all.clone().acquire_owned().await.ok(),
            None => None,
        };
        let each = match tool.and_then(|tool| self.turns.of(tool, &self.settings)) {
            Some(each) => each.acquire_owned().await.ok(),
            None => None,
        };
        [all, each]
    }
}

impl Turns {
    fn of(&self, tool: &str, settings: &Settings) -> Option<Arc<Semaphore>> {
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
