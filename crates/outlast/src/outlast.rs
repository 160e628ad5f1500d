//! The entry point: a store, what is served, and on which transport.

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

/// The store and the policy of a server.
#[derive(Clone)]
pub struct Outlast {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) filters: Vec<Arc<dyn Middleware>>,
    /// Records child processes.
    pub(crate) children: Option<Register>,
    /// How long recovered tasks wait for an upstream that is added later.
    pub(crate) late_upstreams: Option<Duration>,
}

/// Configures an [`Outlast`].
#[derive(Default)]
pub struct OutlastBuilder {
    store: Option<Arc<dyn Store>>,
    policy: Policy,
    filters: Vec<Arc<dyn Middleware>>,
    children: Option<Register>,
    late_upstreams: Option<Duration>,
}

/// A configured server that is not started.
pub struct Server {
    outlast: Outlast,
    service: Arc<dyn Backend>,
    runner: Arc<dyn Runner>,
    /// The name of the backend's runner.
    name: Arc<str>,
}

/// A running HTTP server.
pub struct Running {
    http: HttpServer,
    engine: Engine,
    store: Arc<dyn Store>,
}

impl Outlast {
    /// Returns a builder. Without a store, tasks are kept in memory.
    pub fn builder() -> OutlastBuilder {
        OutlastBuilder::default()
    }

    /// Returns an engine builder. Once the store is open, the engine ends the child processes of a
    /// previous run. It waits for the store, because another process may hold it and use them.
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

    /// A server for these tools.
    pub fn tools(&self, tools: Tools, about: ServerInfo) -> Server {
        let tools = Arc::new(tools);
        self.serve(Arc::new(Own::new(tools.clone(), about)), tools)
    }

    /// A server for any backend. `runner` executes its calls and is registered as [`RUNNER`].
    pub fn serve(&self, service: Arc<dyn Backend>, runner: Arc<dyn Runner>) -> Server {
        self.serve_as(RUNNER.into(), service, runner)
    }

    /// A server for a backend whose runner has another name.
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
    /// Stores tasks in `store`.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds middleware around every request, inside the middleware that was added before.
    pub fn filter(mut self, filter: Arc<dyn Middleware>) -> Self {
        self.filters.push(filter);
        self
    }

    /// Records the processes of upstreams in a folder. After a crash the next run ends them before
    /// it runs anything again.
    pub fn children(mut self, register: Option<Register>) -> Self {
        self.children = register;
        self
    }

    /// Makes recovered tasks of a gateway wait up to `limit` until their upstream is added
    /// ([`ServedUpstreams::add`](crate::gateway::ServedUpstreams::add)). Without it, their outcome
    /// is unknown.
    pub fn late_upstreams(mut self, limit: Duration) -> Self {
        self.late_upstreams = Some(limit);
        self
    }

    /// Builds the [`Outlast`].
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
    /// Serves on standard input and output until the input ends. Then it waits a limited time for
    /// running tasks; the next start recovers those that did not end.
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
            let why = format!("{address} is not a socket address; use one like 127.0.0.1:8040");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        let options = HttpOptions {
            bind,
            ..HttpOptions::default()
        };
        self.http_with(options).await
    }

    /// Serves over HTTP. The listener opens first. Until the store is open and tasks of a previous
    /// run are recovered, requests are answered with −32603 "starting".
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

    /// Opens the engine, recovers tasks of a previous run, and returns the engine and the server.
    pub async fn open(self) -> io::Result<(Engine, Arc<McpServer>)> {
        let (engine, front, start) = self.start();
        start.await?;
        Ok((engine, front))
    }

    /// The engine and the server. They reject all requests until the future is done.
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
    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.http.local_addr()
    }

    /// The URL of its endpoint for clients on this machine.
    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Stops accepting calls, waits a limited time for calls and requests, and closes the store.
    /// The next start recovers the calls that did not end. Until the end it answers health checks
    /// and requests about its tasks.
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

/// How long calls may continue when their server ends.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
