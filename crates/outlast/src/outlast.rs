//! The entry point: a store, what is served, and on which transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::EngineBuilder;
use outlast_engine::engine::Runner;
use outlast_engine::{Engine, MemoryStore, Policy, Store};

use crate::LocalServer;
use crate::server::{Backend, McpServer, Middleware, RUNNER, ServerInfo};
use crate::tools::Tools;
use crate::transport::child_registry::ChildRegistry;
use crate::transport::http::{self, HttpOptions, HttpServer};
use crate::transport::stdio;

/// The store and the policy of a server.
#[derive(Clone)]
pub struct Outlast {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    /// Records child processes.
    pub(crate) children: Option<ChildRegistry>,
    /// How long recovered tasks wait for an upstream that is added later.
    pub(crate) late_upstreams: Option<Duration>,
}

/// Configures an [`Outlast`].
#[derive(Default)]
pub struct OutlastBuilder {
    store: Option<Arc<dyn Store>>,
    policy: Policy,
    middleware: Vec<Arc<dyn Middleware>>,
    children: Option<ChildRegistry>,
    late_upstreams: Option<Duration>,
}

/// A configured server that is not started.
pub struct Server {
    outlast: Outlast,
    backend: Arc<dyn Backend>,
    runner: Arc<dyn Runner>,
    /// The name of the backend's runner.
    name: Arc<str>,
}

/// A running HTTP server.
pub struct ServerHandle {
    http: HttpServer,
    engine: Engine,
    store: Arc<dyn Store>,
}

impl Outlast {
    /// Returns a builder. Without a store, tasks are kept in memory.
    pub fn builder() -> OutlastBuilder {
        OutlastBuilder::default()
    }

    /// Returns an engine builder. The engine first opens the store and then ends the child
    /// processes of the previous run. While another process has the store open, that process may
    /// use them.
    pub(crate) fn engine(&self) -> EngineBuilder {
        let children = self.children.clone();
        let end_orphans = async move {
            match children {
                Some(children) => children.end_orphans().await,
                None => Ok(()),
            }
        };
        Engine::builder(self.store.clone())
            .policy(self.policy.clone())
            .before_recovery(end_orphans)
    }

    /// A server for these tools.
    pub fn tools(&self, tools: Tools, info: ServerInfo) -> Server {
        let tools = Arc::new(tools);
        self.serve(Arc::new(LocalServer::new(tools.clone(), info)), tools)
    }

    /// A server for any backend. `runner` executes its calls and is registered as [`RUNNER`].
    pub fn serve(&self, backend: Arc<dyn Backend>, runner: Arc<dyn Runner>) -> Server {
        self.serve_as(RUNNER.into(), backend, runner)
    }

    /// A server for a backend whose runner has another name.
    pub(crate) fn serve_as(
        &self,
        name: Arc<str>,
        backend: Arc<dyn Backend>,
        runner: Arc<dyn Runner>,
    ) -> Server {
        Server {
            outlast: self.clone(),
            backend,
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
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Records the processes of upstreams in a folder. After a crash the next run ends them before
    /// it runs anything again.
    pub fn children(mut self, registry: Option<ChildRegistry>) -> Self {
        self.children = registry;
        self
    }

    /// Makes recovered tasks of a gateway wait up to `limit` until their upstream is added
    /// ([`UpstreamEndpoints::add`](crate::gateway::UpstreamEndpoints::add)). Without it, their outcome
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
            middleware: self.middleware,
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
        let (engine, server) = self.open().await?;
        let served = stdio::serve(server).await;
        close(engine, &*store).await?;
        served
    }

    /// Serves over HTTP at `address`, such as `127.0.0.1:8040`.
    pub async fn http(self, address: &str) -> io::Result<ServerHandle> {
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
    pub async fn http_with(self, options: HttpOptions) -> io::Result<ServerHandle> {
        let store = self.outlast.store.clone();
        let (engine, server, start) = self.start();
        let http = http::serve(server, options).await?;
        if let Err(error) = start.await {
            http.shutdown().await;
            return Err(error);
        }
        Ok(ServerHandle {
            http,
            engine,
            store,
        })
    }

    /// Opens the engine, recovers tasks of a previous run, and returns the engine and the server.
    pub async fn open(self) -> io::Result<(Engine, Arc<McpServer>)> {
        let (engine, server, start) = self.start();
        start.await?;
        Ok((engine, server))
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
        let server = McpServer::with_backend(engine.clone(), self.backend, self.outlast.middleware);
        let start = async { start.await.map(drop).map_err(io::Error::other) };
        (engine, server, start)
    }
}

impl ServerHandle {
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
        let drained = self.engine.shutdown(DRAIN_TIMEOUT).await;
        self.http.shutdown().await;
        drained.map_err(io::Error::other)?;
        self.store.close().await.map_err(io::Error::other)
    }
}

async fn close(engine: Engine, store: &dyn Store) -> io::Result<()> {
    engine
        .shutdown(DRAIN_TIMEOUT)
        .await
        .map_err(io::Error::other)?;
    store.close().await.map_err(io::Error::other)
}

/// How long calls may continue when their server ends.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
