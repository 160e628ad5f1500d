//! A gateway: one engine on one store, and one endpoint for each upstream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::RecoveryCounts;
use outlast_engine::{Engine, EngineError, Policy, Store};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use super::Upstream;
use super::endpoints::{ENDPOINT_PATH, UpstreamEndpoint, UpstreamEndpoints};
use super::late_upstreams::LateUpstreams;
use crate::outlast::Outlast;
use crate::running_server::{DRAIN_TIMEOUT, Server};
use crate::server::McpServer;
use crate::transport::http::{self, HttpOptions, HttpServer, Pages};
use crate::webhook::{Sender, Webhooks};

/// Several upstreams that share an engine.
///
/// ```no_run
/// use outlast::Outlast;
/// use outlast::client::Target;
/// use outlast::gateway::{Settings, Upstream};
/// use outlast::transport::http::HttpOptions;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let store = outlast::store::open("sqlite:tasks.db").await?;
/// let target = Target::url("http://127.0.0.1:9000/mcp");
/// let files = Upstream::new("files", target, Settings::default());
/// let target = Target::url("http://127.0.0.1:9001/mcp");
/// let mail = Upstream::new("mail", target, Settings::default());
/// let gateway = Outlast::builder().store(store).build().gateway(vec![files, mail]).await?;
/// let running = gateway.http(None, HttpOptions::default()).await?;
/// for endpoint in running.endpoints() {
///     println!("{}", running.url(&endpoint));
/// }
/// running.shutdown().await?;
/// # Ok(()) }
/// ```
pub struct Gateway {
    engine: Engine,
    /// The start in the background, until its result is known.
    start: Option<JoinHandle<Result<RecoveryCounts, EngineError>>>,
    store: Arc<dyn Store>,
    upstreams: Arc<UpstreamEndpoints>,
    webhooks: Option<Arc<Webhooks>>,
    /// The URL of its pages, if it is not the address of the listener.
    public_url: Option<String>,
}

/// A gateway that listens on HTTP.
pub struct RunningGateway {
    gateway: Gateway,
    http: HttpServer,
    /// Ends the sender of webhooks.
    sender: Option<AbortHandle>,
}

impl Outlast {
    /// A server for one upstream.
    pub fn upstream(&self, upstream: Upstream) -> Server {
        let upstream = upstream.configured(self.children.as_ref(), &self.policy.sizes);
        let upstream = Arc::new(upstream);
        Server {
            outlast: self.clone(),
            runner_name: upstream.runner.clone(),
            backend: upstream.clone(),
            runner: upstream,
            http: HttpOptions::default(),
            callback_path: None,
            tasks: None,
            fallback: None,
        }
    }

    /// A gateway to several upstreams with different names. A single upstream is served at `/mcp`,
    /// each of several at `/mcp/NAME`.
    ///
    /// An [`OpeningStore`](outlast_engine::store::OpeningStore) is opened, and tasks of a previous
    /// run are recovered, in the background. Until then requests are answered with −32603
    /// "starting". [`Gateway::started`] waits for it.
    pub async fn gateway(&self, upstreams: Vec<Upstream>) -> io::Result<Gateway> {
        let (children, sizes) = (self.children.as_ref(), &self.policy.sizes);
        let upstreams = upstreams.into_iter();
        let upstreams = upstreams.map(|upstream| Arc::new(upstream.configured(children, sizes)));
        let upstreams: Vec<_> = upstreams.collect();
        let late = self.late_upstreams.map(LateUpstreams::new).map(Arc::new);
        let builder = match &late {
            Some(late) => self.engine().absent_runner(late.clone()),
            None => self.engine(),
        };
        let builder = upstreams.iter().fold(builder, |builder, upstream| {
            builder.runner(upstream.runner.clone(), upstream.clone())
        });
        let webhooks = (!self.webhooks.is_empty()).then(|| Webhooks::new(self.webhooks.clone()));
        let builder = match &webhooks {
            Some(webhooks) => builder.status_recorder(webhooks.clone()),
            None => builder,
        };
        let (engine, start) = builder.start();
        let start = tokio::spawn(start);
        let single = upstreams.len() == 1;
        let served = upstreams.into_iter().map(|upstream| UpstreamEndpoint {
            server: McpServer::new(
                engine.clone(),
                upstream.clone(),
                self.middleware.clone(),
                None,
            ),
            path: if single {
                ENDPOINT_PATH.to_owned()
            } else {
                format!("{ENDPOINT_PATH}/{}", upstream.name())
            },
            upstream,
        });
        let served = served.collect();
        let children = self.children.clone();
        let upstreams = UpstreamEndpoints::new(engine.clone(), children, late, served);
        Ok(Gateway {
            upstreams: Arc::new(upstreams),
            engine,
            start: Some(start),
            store: self.store.clone(),
            webhooks,
            public_url: self.public_url.clone(),
        })
    }
}

impl Gateway {
    /// Its engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Waits until the store is open and tasks of a previous run are recovered.
    pub async fn started(&mut self) -> io::Result<()> {
        let Some(start) = &mut self.start else {
            return Ok(());
        };
        let started = start.await.map_err(io::Error::other)?;
        self.start = None;
        started.map(drop).map_err(io::Error::other)
    }

    /// The endpoints that it serves.
    pub fn endpoints(&self) -> Vec<UpstreamEndpoint> {
        self.upstreams.all()
    }

    /// The endpoints, as a handle that can add upstreams while the gateway runs.
    pub fn upstreams(&self) -> &Arc<UpstreamEndpoints> {
        &self.upstreams
    }

    /// Serves over HTTP, with `pages` next to the endpoints. The listener is open before the
    /// gateway has started; this method returns when it has.
    pub async fn http(
        mut self,
        pages: Option<Arc<dyn Pages>>,
        options: HttpOptions,
    ) -> io::Result<RunningGateway> {
        let servers = self.endpoints().into_iter();
        let servers = servers.map(|served| (served.path, served.server));
        let http = http::serve_all(servers.collect(), pages, options).await?;
        if let Err(error) = self.started().await {
            http.shutdown().await;
            return Err(error);
        }
        let sender = match self.webhooks.clone() {
            Some(webhooks) => {
                let own_url = || http.url_of("");
                let url = self.public_url.clone().unwrap_or_else(own_url);
                let sender = Sender::new(webhooks, self.engine.clone(), url)?;
                Some(tokio::spawn(sender.run()).abort_handle())
            }
            None => None,
        };
        Ok(RunningGateway {
            gateway: self,
            http,
            sender,
        })
    }

    /// Stops accepting calls, waits a limited time for running calls, and closes upstreams and
    /// store. The next start recovers the calls that did not end.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_after(async {}).await
    }

    /// Like [`Self::shutdown`]. `before_close` runs after the calls have ended and before the
    /// upstreams are closed.
    pub async fn shutdown_after(self, before_close: impl Future<Output = ()>) -> io::Result<()> {
        self.engine
            .shutdown(DRAIN_TIMEOUT)
            .await
            .map_err(io::Error::other)?;
        before_close.await;
        // A server that does not end in time is killed with this process.
        for served in self.upstreams.all() {
            let _ = timeout(DRAIN_TIMEOUT, served.upstream.close()).await;
        }
        self.store.close().await.map_err(io::Error::other)
    }
}

impl RunningGateway {
    /// The endpoints that it serves.
    pub fn endpoints(&self) -> Vec<UpstreamEndpoint> {
        self.gateway.endpoints()
    }

    /// The gateway, for access that does not use HTTP.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The URL of an endpoint for clients on this machine.
    pub fn url(&self, served: &UpstreamEndpoint) -> String {
        self.http.url_of(&served.path)
    }

    /// The URL of another path of its listener, such as that of a console.
    pub fn url_of(&self, path: &str) -> String {
        self.http.url_of(path)
    }

    /// Like [`Gateway::shutdown`], and then closes the listener. Until the end it answers health
    /// checks and requests about its tasks.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_after(async {}).await
    }

    /// Like [`Self::shutdown`]. `before_close` runs after the calls have ended and before the
    /// upstreams are closed.
    pub async fn shutdown_after(self, before_close: impl Future<Output = ()>) -> io::Result<()> {
        let sender = self.sender;
        let before_close = async {
            before_close.await;
            // Deliveries that wait are sent after the next start.
            if let Some(sender) = sender {
                sender.abort();
            }
        };
        let ended = self.gateway.shutdown_after(before_close).await;
        self.http.shutdown().await;
        ended
    }
}

/// The policy of a gateway: a running call never expires, and TTL and run time are at most a day.
pub fn policy() -> Policy {
    Policy::default().with_max_ttl(DAY).with_run_limit(DAY)
}

const DAY: Duration = Duration::from_secs(24 * 3_600);
