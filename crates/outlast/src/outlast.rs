//! A server in a few lines: a store, what is served, and where.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::EngineBuilder;
use outlast_engine::engine::Runner;
use outlast_engine::{Engine, MemoryStore, Policy, Store};

use crate::Own;
use crate::server::{Backend, McpServer, Middleware, RUNNER, ServerInfo};
use crate::tools::Tools;
use crate::transport::http::{self, HttpOptions, HttpServer};
use crate::transport::register::Register;
use crate::transport::stdio;

/// Where tasks are kept and by which rules, for whatever is served.
#[derive(Clone)]
pub struct Outlast {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) filters: Vec<Arc<dyn Middleware>>,
    /// Where child processes are written down.
    pub(crate) children: Option<Register>,
    /// How long recovered tasks wait for an upstream that is added later.
    pub(crate) late_upstreams: Option<Duration>,
}

/// An [`Outlast`] to be.
#[derive(Default)]
pub struct OutlastBuilder {
    store: Option<Arc<dyn Store>>,
    policy: Policy,
    filters: Vec<Arc<dyn Middleware>>,
    children: Option<Register>,
    late_upstreams: Option<Duration>,
}

/// A server that is not started yet.
pub struct Server {
    outlast: Outlast,
    service: Arc<dyn Backend>,
    runner: Arc<dyn Runner>,
    /// The name that the service gives its runner.
    name: Arc<str>,
}

/// A server that listens on HTTP.
pub struct Running {
    http: HttpServer,
    engine: Engine,
    store: Arc<dyn Store>,
}

impl Outlast {
    /// Begins to describe one. Without a word it keeps tasks in memory.
    pub fn builder() -> OutlastBuilder {
        OutlastBuilder::default()
    }

    /// Starts to build the engine. Once the store is open, it ends the child processes that a previous
    /// process left: before that, another process may hold the store and use them.
    pub(crate) fn engine(&self) -> EngineBuilder {
        let children = self.children.clone();
        let end_left = async move {
            match children {
                Some(children) => children.end_left().await,
                None => Ok(()),
            }
        };
        Engine::builder(self.store.clone())
            .policy(self.policy.clone())
            .before_recovery(end_left)
    }

    /// A server of these tools.
    pub fn tools(&self, tools: Tools, about: ServerInfo) -> Server {
        let tools = Arc::new(tools);
        self.serve(Arc::new(Own::new(tools.clone(), about)), tools)
    }

    /// A server of anything; `runner` runs what `service` offers under [`RUNNER`].
    pub fn serve(&self, service: Arc<dyn Backend>, runner: Arc<dyn Runner>) -> Server {
        self.serve_as(RUNNER.into(), service, runner)
    }

    /// The same, where the service names its runner differently.
    pub(crate) fn serve_as(
        &self,
        name: Arc<str>,
        service: Arc<dyn Backend>,
        runner: Arc<dyn Runner>,
    ) -> Server {
        Server {
            outlast: self.clone(),
            service,
            runner,
            name,
        }
    }
}

impl OutlastBuilder {
    /// Keeps tasks in `store`.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Grants what `policy` says.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Puts `filter` around every request, inside those that were named before.
    pub fn filter(mut self, filter: Arc<dyn Middleware>) -> Self {
        self.filters.push(filter);
        self
    }

    /// Writes down the processes of upstreams in a folder, beside the store: those that a life of this process leaves when it
    /// is killed are ended by the next one before it runs anything again.
    pub fn children(mut self, register: Option<Register>) -> Self {
        self.children = register;
        self
    }

    /// Lets recovered tasks of a gateway wait up to `limit` until the upstream that ran them is added
    /// ([`ServedUpstreams::add`](crate::gateway::ServedUpstreams::add)). Otherwise their outcome is unknown.
    pub fn late_upstreams(mut self, limit: Duration) -> Self {
        self.late_upstreams = Some(limit);
        self
    }

    /// The rules, settled.
    pub fn build(self) -> Outlast {
        Outlast {
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            policy: self.policy,
            filters: self.filters,
            children: self.children,
            late_upstreams: self.late_upstreams,
        }
    }
}

impl Server {
    /// Serves on standard input and output until the input ends; tasks get a while to finish, the rest is for the next
    /// start.
    pub async fn stdio(self) -> io::Result<()> {
        let store = self.outlast.store.clone();
        let (engine, front) = self.open().await?;
        let served = stdio::serve(front).await;
        close(engine, &*store).await?;
        served
    }

    /// Serves over HTTP at `address`, such as `127.0.0.1:8040`.
    pub async fn http(self, address: &str) -> io::Result<Running> {
        let bind: SocketAddr = address.parse().map_err(|_| {
            let why = format!("{address} is no address; write one like 127.0.0.1:8040");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        let options = HttpOptions {
            bind,
            ..HttpOptions::default()
        };
        self.http_with(options).await
    }

    /// Serves over HTTP as `options` say. The listener opens first: until tasks of a previous run are
    /// recovered, and the store is open if it is an [`OpeningStore`](outlast_engine::store::OpeningStore), requests
    /// are answered with −32603 "starting".
    pub async fn http_with(self, options: HttpOptions) -> io::Result<Running> {
        let store = self.outlast.store.clone();
        let (engine, front, start) = self.start();
        let http = http::serve(front, options).await?;
        if let Err(error) = start.await {
            http.shutdown().await;
            return Err(error);
        }
        Ok(Running {
            http,
            engine,
            store,
        })
    }

    /// Its engine, which has recovered tasks of a previous run, and its front.
    pub async fn open(self) -> io::Result<(Engine, Arc<McpServer>)> {
        let (engine, front, start) = self.start();
        start.await?;
        Ok((engine, front))
    }

    /// Its engine and its front, which refuse everything until the future is done.
    fn start(
        self,
    ) -> (
        Engine,
        Arc<McpServer>,
        impl Future<Output = io::Result<()>> + Send,
    ) {
        let builder = self.outlast.engine().runner(self.name, self.runner);
        let (engine, start) = builder.start();
        let front = McpServer::with_backend(engine.clone(), self.service, self.outlast.filters);
        let start = async { start.await.map(drop).map_err(io::Error::other) };
        (engine, front, start)
    }
}

impl Running {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.http.local_addr()
    }

    /// The address of its endpoint, for clients on this machine.
    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Takes no more work, lets calls and requests finish for a while, and ends. What is left is for the next start. Until the
    /// end it answers health checks and requests about its tasks.
    pub async fn shutdown(self) -> io::Result<()> {
        let drained = self.engine.shutdown(DRAIN).await;
        self.http.shutdown().await;
        drained.map_err(io::Error::other)?;
        self.store.close().await.map_err(io::Error::other)
    }
}

async fn close(engine: Engine, store: &dyn Store) -> io::Result<()> {
    engine.shutdown(DRAIN).await.map_err(io::Error::other)?;
    store.close().await.map_err(io::Error::other)
}

/// How long calls may go on when their server ends.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
