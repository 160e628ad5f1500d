//! Upstreams, an engine and fronts, put together: one endpoint for each upstream, all on one store.

use std::io;
use std::sync::Arc;

use outlast_engine::engine::RecoveryCounts;
use outlast_engine::{Engine, EngineError, Policy, Store};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Upstream;
use super::late::LateUpstreams;
use super::served::{PATH, Served, ServedUpstreams};
use crate::outlast::{DRAIN, Outlast, Server};
use crate::server::McpServer;
use crate::transport::http::{self, HttpOptions, HttpServer, Pages};

/// Upstreams before one engine.
pub struct Gateway {
    engine: Engine,
    /// Until its result is known.
    start: Option<JoinHandle<Result<RecoveryCounts, EngineError>>>,
    store: Arc<dyn Store>,
    upstreams: Arc<ServedUpstreams>,
}

/// A gateway that listens on HTTP.
pub struct RunningGateway {
    gateway: Gateway,
    http: HttpServer,
}

impl Outlast {
    /// A server of whatever `upstream` offers.
    pub fn upstream(&self, upstream: Upstream) -> Server {
        let upstream = upstream.assembled(self.children.as_ref(), &self.policy.sizes);
        let upstream = Arc::new(upstream);
        let runner = upstream.runner.clone();
        self.serve_as(runner, upstream.clone(), upstream)
    }

    /// A gateway to several upstreams, of which no two have the same name. A single one is at `/mcp`, each of several at
    /// `/mcp/NAME`.
    ///
    /// Tasks of a previous run are recovered, and the store is opened if it is an
    /// [`OpeningStore`](outlast_engine::store::OpeningStore), in the background: until then requests are answered with
    /// −32603 "starting". [`Gateway::started`] waits for it.
    pub async fn gateway(&self, upstreams: Vec<Upstream>) -> io::Result<Gateway> {
        let (children, sizes) = (self.children.as_ref(), &self.policy.sizes);
        let upstreams = upstreams.into_iter();
        let upstreams = upstreams.map(|upstream| Arc::new(upstream.assembled(children, sizes)));
        let upstreams: Vec<_> = upstreams.collect();
        let late = self.late_upstreams.map(LateUpstreams::new).map(Arc::new);
        let builder = match &late {
            Some(late) => self.engine().absent_runner(late.clone()),
            None => self.engine(),
        };
        let builder = upstreams.iter().fold(builder, |builder, upstream| {
            builder.runner(upstream.runner.clone(), upstream.clone())
        });
        let (engine, start) = builder.start();
        let start = tokio::spawn(start);
        let single = upstreams.len() == 1;
        let served = upstreams.into_iter().map(|upstream| Served {
            front: McpServer::with_backend(engine.clone(), upstream.clone(), self.filters.clone()),
            path: if single {
                PATH.to_owned()
            } else {
                format!("{PATH}/{}", upstream.name())
            },
            upstream,
        });
        let served = served.collect();
        let children = self.children.clone();
        let upstreams = ServedUpstreams::new(engine.clone(), children, late, served);
        Ok(Gateway {
            upstreams: Arc::new(upstreams),
            engine,
            start: Some(start),
            store: self.store.clone(),
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

    /// What it serves.
    pub fn served(&self) -> Vec<Served> {
        self.upstreams.all()
    }

    /// The same, where upstreams can be added as long as it runs.
    pub fn upstreams(&self) -> &Arc<ServedUpstreams> {
        &self.upstreams
    }

    /// Serves over HTTP as `options` say, with pages beside the endpoints. The listener is open before the
    /// gateway has started; this returns when it has.
    pub async fn http(
        mut self,
        pages: Option<Arc<dyn Pages>>,
        options: HttpOptions,
    ) -> io::Result<RunningGateway> {
        let fronts = self.served().into_iter();
        let fronts = fronts.map(|served| (served.path, served.front));
        let http = http::serve_all(fronts.collect(), pages, options).await?;
        if let Err(error) = self.started().await {
            http.shutdown().await;
            return Err(error);
        }
        Ok(RunningGateway {
            gateway: self,
            http,
        })
    }

    /// Takes no more work, lets what runs finish for a while, and ends. What is left is for the next start.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_after(async {}).await
    }

    /// The same. `last_answers` runs when calls have ended and before upstreams are closed.
    pub async fn shutdown_after(self, last_answers: impl Future<Output = ()>) -> io::Result<()> {
        self.engine
            .shutdown(DRAIN)
            .await
            .map_err(io::Error::other)?;
        last_answers.await;
        // Servers that do not leave are ended with this process.
        for served in self.upstreams.all() {
            let _ = timeout(DRAIN, served.upstream.close()).await;
        }
        self.store.close().await.map_err(io::Error::other)
    }
}

impl RunningGateway {
    /// What it serves.
    pub fn served(&self) -> Vec<Served> {
        self.gateway.served()
    }

    /// The gateway, for those who reach it in another way than over HTTP.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The address of the endpoint before an upstream, for clients on this machine.
    pub fn url(&self, served: &Served) -> String {
        self.http.url_of(&served.path)
    }

    /// As [`Gateway::shutdown`], with the requests that are open. Until the end it answers health checks and requests
    /// about its tasks.
    pub async fn shutdown(self) -> io::Result<()> {
        self.shutdown_after(async {}).await
    }

    /// The same. `last_answers` runs when calls have ended and before upstreams are closed.
    pub async fn shutdown_after(self, last_answers: impl Future<Output = ()>) -> io::Result<()> {
        let ended = self.gateway.shutdown_after(last_answers).await;
        self.http.shutdown().await;
        ended
    }
}

/// What a gateway grants: a call that runs is never forgotten, tasks live for up to a day, and so may calls.
pub fn policy() -> Policy {
    Policy {
        max_ttl_ms: DAY,
        run_limit_ms: Some(DAY),
        ..Policy::default()
    }
}

const DAY: u64 = 24 * 3_600_000;
