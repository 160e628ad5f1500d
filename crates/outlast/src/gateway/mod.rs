//! The gateway: any MCP server behind the fronts of this library, with durable tasks for any client.
//!
//! An [`Upstream`] is a [`Backend`](crate::server::Backend) for the server side and a
//! [`Runner`](outlast_engine::engine::Runner) for the engine, as tools of this process are. What a client sends is run as a
//! call of ours; the upstream server is asked through [`back`](crate::client), in whatever generation it speaks.
//!
//! | where | what |
//! |---|---|
//! | `settings` | what can be said of an upstream and of its tools |
//! | `pool`, `connection` | one connection for each owner and what its clients can be asked, kept while it is needed |
//! | `active_calls`, `listeners` | the calls under way on a connection, and the clients that use it |
//! | `admission` | how many calls may be open, in total and for each owner |
//! | `probe` | whether it can be reached, before anybody wants something of it |
//! | `asks`, `pages`, `notices` | what the upstream asks and tells on its own, and whose business it is |
//! | `catalogue`, `list` | its tools: how they may be called, and how they are shown |
//! | `backend`, `runner` | what the server side uses, and what runs its calls |
//! | `prepared`, `follow`, `owner`, `again` | one call from its preparation to its end; a task of the upstream found again after a restart |
//! | `result`, `errors` | an answer of the upstream as our client gets it |
//! | `patience` | how long known clients wait for an answer |
//! | `assembly`, `served` | several upstreams on one store, each at its own endpoint; upstreams that are added while it runs |
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

/// A server somewhere else, served as if it were here.
pub struct Upstream {
    name: Arc<str>,
    target: Target,
    settings: Settings,
    runner: Arc<str>,
    pool: Pool,
    fronts: Arc<Fronts>,
    turns: Turns,
    open_calls: OpenCalls,
    /// Whether it could not be reached for nobody in particular, and has not been reached since.
    unmet: Arc<AtomicBool>,
    probing: Probing,
}

/// How many calls may be under way at once, of all tools and of each.
struct Turns {
    all: Option<Arc<Semaphore>>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// That a call is under way.
type Turn = [Option<OwnedSemaphorePermit>; 2];

impl Upstream {
    /// The server at `target`, which we call `name`. The name must stay the same over restarts: its tasks are found by it.
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

    /// The same in a gateway that keeps results as `sizes` says. Its processes are written down in `register`, if it has any
    /// and there is one.
    fn assembled(mut self, register: Option<&Register>, sizes: &SizeLimits) -> Self {
        self.target = self.target.with_payload(sizes.payload_bytes);
        if let Some(register) = register {
            self.target = self.target.with_child_register(register);
        }
        self
    }

    /// What we call it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The name of its runner.
    pub fn runner(&self) -> &Arc<str> {
        &self.runner
    }

    /// Closes every connection to it and waits until that is done.
    pub async fn close(&self) {
        for connection in self.pool.take_all() {
            // Calls that end with us tell their server so (BD-20).
            connection.quiet(runner::TIDY_UP).await;
            connection.back.close().await;
        }
    }

    /// Whether it could not be connected to when that was tried last.
    pub fn is_failing(&self) -> bool {
        self.unmet.load(Ordering::Relaxed) || self.pool.is_failing()
    }

    /// How many connections to it are open.
    pub fn connections(&self) -> usize {
        self.pool.len()
    }

    /// What it takes to connect to it in `era`.
    fn way(&self, era: Era) -> Way {
        Way {
            name: self.name.clone(),
            target: self.target.clone(),
            era,
            handshake: self.settings.handshake,
            fronts: self.fronts.clone(),
        }
    }

    /// A turn for a call of `tool` that is under way already, as far as there is one.
    fn turn_if_free(&self, tool: Option<&str>) -> Turn {
        let all = self.turns.all.clone();
        let each = tool.and_then(|tool| self.turns.of(tool, &self.settings));
        [all, each].map(|turns| turns?.try_acquire_owned().ok())
    }

    /// Waits until a call of `tool` may begin.
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
