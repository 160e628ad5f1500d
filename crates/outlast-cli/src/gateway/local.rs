//! Serves the local socket of a gateway: relays, `outlast tasks`, and the commands of `outlast
//! gateway`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outlast::engine::{Engine, RetentionLimits};
use outlast::gateway::{Gateway, UpstreamEndpoints};
use outlast::server::McpServer;
use outlast::transport::stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::control::{self, ControlReply, FirstLine, GatewayKind, Status};
use super::servers::Servers;
use super::socket;
use super::task_backend::TaskBackend;
use super::task_changes;
use crate::exit::Failure;

/// The facts for [`Status`] that do not change.
pub(crate) struct GatewayInfo {
    pub(crate) kind: GatewayKind,
    pub(crate) store: String,
    pub(crate) urls: Vec<String>,
}

/// The server of the local socket.
pub(crate) struct LocalServer {
    info: GatewayInfo,
    engine: Engine,
    upstreams: Arc<UpstreamEndpoints>,
    servers: Servers,
    /// Serves connections that need only tasks.
    tasks: Arc<McpServer>,
    /// The number of open connections.
    connections: watch::Sender<usize>,
    /// The number of open MCP connections of relays.
    hosts: watch::Sender<usize>,
    /// Set when the connections must close.
    closing: watch::Sender<bool>,
    stop: Notify,
}

impl LocalServer {
    pub(crate) fn new(gateway: &Gateway, info: GatewayInfo) -> Arc<Self> {
        let engine = gateway.engine().clone();
        let upstreams = gateway.upstreams().clone();
        Arc::new(Self {
            info,
            tasks: McpServer::for_operator(engine.clone(), Arc::new(TaskBackend)),
            engine,
            servers: Servers::new(upstreams.clone()),
            upstreams,
            connections: watch::Sender::new(0),
            hosts: watch::Sender::new(0),
            closing: watch::Sender::new(false),
            stop: Notify::new(),
        })
    }

    /// Accepts connections while it is polled. A failed accept, for example without a free file
    /// descriptor, does not end it.
    pub(crate) async fn accept(self: &Arc<Self>, listener: &UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = self.clone();
                    // Counted here, so that a gateway with an accepted connection does not exit as
                    // idle.
                    self.connections.send_modify(|open| *open += 1);
                    tokio::spawn(async move {
                        let _open = ConnectionCount(&server.connections);
                        if let Err(error) = server.serve(stream).await {
                            tracing::warn!(%error, "a connection to the local socket failed");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the local socket; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Resolves when a connection requests a stop.
    pub(crate) async fn stop_requested(&self) {
        self.stop.notified().await;
    }

    /// Resolves when no connection was open and no call ran for `limit`, and none is open at that
    /// moment.
    pub(super) async fn idle(&self, limit: Duration) {
        let mut busy = Instant::now();
        loop {
            // A call with an open input request counts as running.
            if *self.connections.borrow() > 0 || self.engine.running() > 0 {
                busy = Instant::now();
            } else if busy.elapsed() >= limit {
                return;
            }
            tokio::time::sleep((limit / 4).clamp(MIN_CHECK_INTERVAL, MIN_CHECK_INTERVAL * 20))
                .await;
        }
    }

    /// Sends the responses that are ready and closes the connections.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut hosts = self.hosts.subscribe();
        let all_closed = hosts.wait_for(|hosts| *hosts == 0);
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, all_closed).await;
    }

    async fn serve(&self, stream: UnixStream) -> Result<(), Failure> {
        let user = rustix::process::geteuid().as_raw();
        socket::check_owner(&stream, user, std::path::Path::new("the local socket"))?;
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut line = String::new();
        let first = tokio::time::timeout(FIRST_LINE_TIMEOUT, read.read_line(&mut line)).await;
        if first.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? == 0 {
            // The client only checked that a gateway listens.
            return Ok(());
        }
        match control::read(&line)? {
            FirstLine::Server(request) => {
                let _host = self.count_host();
                match self.servers.mcp_server(request).await {
                    Ok(mcp_server) => self.mcp(mcp_server, read, write).await,
                    Err(why) => reply(&mut write, &ControlReply::Refused(why.to_string())).await,
                }
            }
            FirstLine::Tasks => {
                let _host = self.count_host();
                self.mcp(self.tasks.clone(), read, write).await
            }
            FirstLine::Rerun { id, yes } => {
                let done = task_changes::rerun(&self.engine, &id, yes).await;
                reply(&mut write, &done).await
            }
            FirstLine::Delete { id } => {
                let done = task_changes::delete(&self.engine, &id).await;
                reply(&mut write, &done).await
            }
            FirstLine::Prune {
                statuses,
                age_ms,
                count,
                bytes,
                dry_run,
            } => {
                let limits = RetentionLimits::default()
                    .with_age(age_ms.map(Duration::from_millis))
                    .with_count(count)
                    .with_bytes(bytes);
                let done = task_changes::prune(&self.engine, &statuses, limits, dry_run).await;
                reply(&mut write, &done).await
            }
            FirstLine::Status => reply(&mut write, &ControlReply::Status(self.status())).await,
            FirstLine::Stop { unless_busy } => {
                let status = self.status();
                if unless_busy && status.calls > 0 {
                    return reply(&mut write, &ControlReply::Busy(status)).await;
                }
                reply(&mut write, &ControlReply::Stopping(status)).await?;
                self.stop.notify_one();
                // Keep the connection open until the process ends.
                std::future::pending().await
            }
        }
    }

    async fn mcp(
        &self,
        mcp_server: Arc<McpServer>,
        read: BufReader<OwnedReadHalf>,
        mut write: OwnedWriteHalf,
    ) -> Result<(), Failure> {
        let gateway = std::process::id();
        reply(&mut write, &ControlReply::Ready { gateway }).await?;
        let mut closing = self.closing.subscribe();
        let closing = async move {
            let _ = closing.wait_for(|closing| *closing).await;
        };
        stdio::serve_until(mcp_server, read, write, closing).await?;
        Ok(())
    }

    fn count_host(&self) -> ConnectionCount<'_> {
        self.hosts.send_modify(|hosts| *hosts += 1);
        ConnectionCount(&self.hosts)
    }

    fn status(&self) -> Status {
        let served = self.upstreams.all();
        let names = served.iter().map(|served| served.upstream.name());
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            kind: self.info.kind,
            store: self.info.store.clone(),
            urls: self.info.urls.clone(),
            hosts: *self.hosts.borrow(),
            calls: self.engine.running(),
            servers: names.map(ToString::to_string).collect(),
        }
    }
}

async fn reply(write: &mut OwnedWriteHalf, reply: &ControlReply) -> Result<(), Failure> {
    write.write_all(control::line(reply).as_bytes()).await?;
    Ok(())
}

/// Counts a connection until it is dropped.
struct ConnectionCount<'a>(&'a watch::Sender<usize>);

impl Drop for ConnectionCount<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may take to send its first line.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connections may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The shortest interval between two checks.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);
