//! A configured server, a started one, and one that listens.

#[cfg(feature = "http")]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::Runner;
use outlast_engine::{Engine, EngineError, Store};

use crate::ServerError;
use crate::detached::{Completion, CompletionError, CompletionHandle};
use crate::outlast::Outlast;
use crate::server::{Backend, McpServer};
#[cfg(feature = "http")]
use crate::transport::http::{
    self, CallbackRoute, CallbackService, Fallback, HttpOptions, HttpServer, HttpService,
};
use crate::transport::stdio;

/// A configured server that is not started. [`Server::builder`] makes one.
#[must_use = "a server does nothing until it is started"]
pub struct Server {
    pub(crate) outlast: Outlast,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) runner: Arc<dyn Runner>,
    /// The name of the backend's runner.
    pub(crate) runner_name: Arc<str>,
    #[cfg(feature = "http")]
    pub(crate) http: HttpOptions,
    /// The path of the callbacks of detached tasks, if its listener serves them.
    #[cfg(feature = "http")]
    pub(crate) callback_path: Option<Arc<str>>,
    /// Whether it has tasks, if that does not depend on its tools.
    pub(crate) tasks: Option<bool>,
    /// Makes the fallback of its listener.
    #[cfg(feature = "http")]
    pub(crate) fallback: Option<MakeFallback>,
}

/// Makes a service that needs the engine.
#[cfg(feature = "http")]
pub(crate) type MakeFallback = Box<dyn FnOnce(&Engine) -> Fallback + Send>;

/// A started server without a listener: its store is open, and tasks of a previous run are
/// recovered. Mount [`RunningServer::http_service`] in your own router.
pub struct RunningServer {
    mcp: Arc<McpServer>,
    engine: Engine,
    store: Arc<dyn Store>,
    #[cfg(feature = "http")]
    http: HttpOptions,
}

/// A server that listens for HTTP.
#[cfg(feature = "http")]
pub struct ServerHandle {
    listener: HttpServer,
    running: RunningServer,
}

impl Server {
    /// Serves on standard input and output until the input ends. Then it waits a limited time for
    /// running tasks; the next start recovers those that did not end.
    pub async fn serve_stdio(self) -> Result<(), ServerError> {
        let running = self.start().await?;
        let served = stdio::serve(running.mcp.clone()).await;
        running.shutdown().await?;
        served.map_err(ServerError::Stdio)
    }

    /// Serves over HTTP at `address`, such as `127.0.0.1:8040`.
    #[cfg(feature = "http")]
    pub async fn serve_http(mut self, address: &str) -> Result<ServerHandle, ServerError> {
        let parsed = address.parse();
        self.http.bind = parsed.map_err(|_| ServerError::Address(address.to_owned()))?;
        self.listen().await
    }

    /// Serves over HTTP at the address of its [`HttpOptions`]. The listener opens first. Until the
    /// store is open and tasks of a previous run are recovered, requests are answered with −32603
    /// "starting".
    #[cfg(feature = "http")]
    pub async fn listen(mut self) -> Result<ServerHandle, ServerError> {
        let callback_path = self.callback_path.clone();
        let fallback = self.fallback.take();
        let (mut running, start) = self.starting();
        if let Some(make) = fallback {
            running.http.fallback = Some(make(&running.engine));
        }
        if let Some(path) = callback_path {
            let route = CallbackRoute {
                path,
                service: running.callback_service(),
                next: running.http.fallback.take(),
            };
            running.http.fallback = Some(Fallback::new(route));
        }
        let listener = http::serve(running.mcp.clone(), running.http.clone()).await;
        let listener = listener.map_err(|source| ServerError::Listen {
            address: running.http.bind,
            source,
        })?;
        if let Err(error) = start.await {
            listener.shutdown().await;
            return Err(error);
        }
        Ok(ServerHandle { listener, running })
    }

    /// Opens the store and recovers tasks of a previous run.
    pub async fn start(self) -> Result<RunningServer, ServerError> {
        let (running, start) = self.starting();
        start.await?;
        Ok(running)
    }

    /// Returns the server at once, and a future that opens the store and recovers tasks of a
    /// previous run. Until the future is done, every request is answered with −32603 "starting".
    pub fn starting(
        self,
    ) -> (
        RunningServer,
        impl Future<Output = Result<(), ServerError>> + Send + use<>,
    ) {
        let builder = self.outlast.engine().runner(self.runner_name, self.runner);
        let (engine, start) = builder.start();
        let running = RunningServer {
            mcp: McpServer::new(
                engine.clone(),
                self.backend,
                self.outlast.middleware,
                self.tasks,
            ),
            engine,
            store: self.outlast.store,
            #[cfg(feature = "http")]
            http: self.http,
        };
        let start = async { start.await.map(drop).map_err(ServerError::from) };
        (running, start)
    }
}

impl RunningServer {
    /// The endpoint, for a router of your program. Call it inside a Tokio runtime. Each call makes
    /// a separate endpoint with its own sessions; clone the service instead.
    ///
    /// ```
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use outlast::prelude::*;
    ///
    /// let server = Server::builder("mounted", "1.0").build().start().await?;
    /// let app: axum::Router = axum::Router::new().nest_service("/mcp", server.http_service());
    /// # drop(app);
    /// server.shutdown().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "http")]
    pub fn http_service(&self) -> HttpService {
        http::service(self.mcp.clone(), self.http.clone())
    }

    /// The endpoint for reports about detached tasks, for a router of your program. A request needs
    /// the handle of its task.
    #[cfg(feature = "http")]
    pub fn callback_service(&self) -> CallbackService {
        CallbackService::new(self.engine.clone())
    }

    /// The detached task of `handle`, to report or end it in this process.
    pub async fn completion(
        &self,
        handle: &CompletionHandle,
    ) -> Result<Completion, CompletionError> {
        Completion::open(&self.engine, handle).await
    }

    /// The MCP server, for a transport of your own and for notifications to its clients.
    pub fn mcp(&self) -> &Arc<McpServer> {
        &self.mcp
    }

    /// The engine that runs its tasks.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Stops accepting calls, waits a limited time for running calls, and closes the store. The
    /// next start recovers the calls that did not end.
    pub async fn shutdown(self) -> Result<(), ServerError> {
        let drained = self.engine.shutdown(DRAIN_TIMEOUT).await;
        close(&*self.store, drained.map(drop)).await
    }
}

#[cfg(feature = "http")]
impl ServerHandle {
    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The URL of its endpoint for clients on this machine.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// The URL of another path of its listener, such as that of a console.
    pub fn url_of(&self, path: &str) -> String {
        self.listener.url_of(path)
    }

    /// The MCP server, for notifications to its clients.
    pub fn mcp(&self) -> &Arc<McpServer> {
        self.running.mcp()
    }

    /// The engine that runs its tasks.
    pub fn engine(&self) -> &Engine {
        self.running.engine()
    }

    /// The detached task of `handle`, to report or end it in this process.
    pub async fn completion(
        &self,
        handle: &CompletionHandle,
    ) -> Result<Completion, CompletionError> {
        self.running.completion(handle).await
    }

    /// Stops accepting calls, waits a limited time for calls and requests, and closes the store.
    /// The next start recovers the calls that did not end. Until the end it answers health checks
    /// and requests about its tasks.
    pub async fn shutdown(self) -> Result<(), ServerError> {
        let RunningServer { engine, store, .. } = self.running;
        let drained = engine.shutdown(DRAIN_TIMEOUT).await;
        self.listener.shutdown().await;
        close(&*store, drained.map(drop)).await
    }
}

/// Closes the store if the engine has stored everything.
async fn close(store: &dyn Store, drained: Result<(), EngineError>) -> Result<(), ServerError> {
    drained?;
    Ok(store.close().await?)
}

/// How long calls may continue when their server ends.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
