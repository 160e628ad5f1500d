//! The HTTP server: its endpoints, and the loop that accepts connections.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Ids, RandomIds};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::bodies::UnfinishedBodies;
use super::connection::{self, Connections};
use super::descriptors;
use super::health::SHUTTING_DOWN;
use super::nodes::{NodeListener, Nodes};
use super::options::HttpOptions;
use super::router::{Pages, Router};
use super::service::{Admission, HttpService};
use super::sse::ServerEpoch;
use crate::server::{McpServer, SessionTable, Sessions};

/// A listening server. It ends when it is shut down or dropped.
pub struct HttpServer {
    address: SocketAddr,
    path: String,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

/// Serves one MCP server over HTTP until the HTTP server is shut down or dropped.
pub async fn serve(server: Arc<McpServer>, options: HttpOptions) -> io::Result<HttpServer> {
    let path = options.path.clone();
    serve_all(vec![(path, server)], None, options).await
}

/// Serves several MCP servers of one engine, each at its own path, and `pages` next to them.
pub async fn serve_all(
    servers: Vec<(String, Arc<McpServer>)>,
    pages: Option<Arc<dyn Pages>>,
    options: HttpOptions,
) -> io::Result<HttpServer> {
    let listener = TcpListener::bind(options.bind).await?;
    let address = listener.local_addr()?;
    let (phase, seen) = watch::channel(ServerPhase::Open);
    let bodies = Arc::new(UnfinishedBodies::new(options.max_unfinished_body_bytes));
    let admission = Arc::new(Admission::new(&options, Some(address.ip())));
    let node_listener = match &options.nodes {
        Some(nodes) => Some(NodeListener::bind(nodes).await?),
        None => None,
    };
    let mut endpoints = Vec::new();
    let mut shared = None;
    for (path, server) in servers {
        let (table, nodes) = match &shared {
            Some(shared) => shared,
            None => {
                let engine = server.engine.clone();
                let table = SessionTable::load(engine.clone(), options.session_limits()).await;
                let table = table.map_err(io::Error::other)?;
                let nodes = node_listener.is_some().then(|| Nodes::new(engine, &table));
                &*shared.insert((table, nodes))
            }
        };
        let (table, nodes) = (table.clone(), nodes.clone());
        let endpoint = Arc::new(Endpoint {
            path,
            sessions: Sessions::new(server, table),
            bodies: bodies.clone(),
            epoch: ServerEpoch(RandomIds.node().0),
            phase: seen.clone(),
            options: options.clone(),
            nodes,
        });
        endpoints.push(HttpService::of_listener(admission.clone(), endpoint));
    }
    let path = options.path.clone();
    let router = Arc::new(Router {
        admission,
        endpoints,
        pages,
        connections: Connections::default(),
        bodies,
        max_connections: descriptors::max_connections(options.max_connections),
        options,
    });
    let nodes = shared.and_then(|(_, nodes)| nodes);
    let nodes = nodes.zip(node_listener);
    let (stop, stopped) = oneshot::channel();
    Ok(HttpServer {
        address,
        path,
        stop,
        accepting: tokio::spawn(accept(router, listener, nodes, stopped, phase)),
    })
}

impl HttpServer {
    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the endpoint for clients on this machine.
    pub fn url(&self) -> String {
        self.url_of(&self.path)
    }

    /// The URL of `path` for clients on this machine.
    pub fn url_of(&self, path: &str) -> String {
        let mut address = self.address;
        // A server that listens on all addresses is reached on loopback.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{address}{path}")
    }

    /// Waits a limited time for open requests, and ends. Meanwhile new connections get health
    /// checks and
    /// 503. Clients can resume their streams after a restart.
    ///
    /// An engine that shuts down before this call rejects new requests and serves those about its
    /// tasks.
    pub async fn shutdown(self) {
        let _ = self.stop.send(());
        if let Err(error) = self.accepting.await {
            tracing::warn!(%error, "the accept loop of the HTTP server failed");
        }
    }
}

/// Whether a server accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerPhase {
    Open,
    Closing,
}

/// One MCP server at one path.
pub(super) struct Endpoint {
    pub(super) path: String,
    pub(super) sessions: Sessions,
    pub(super) bodies: Arc<UnfinishedBodies>,
    pub(super) epoch: ServerEpoch,
    pub(super) phase: watch::Receiver<ServerPhase>,
    pub(super) options: HttpOptions,
    /// The other nodes, if they can forward requests.
    pub(super) nodes: Option<Arc<Nodes>>,
}

impl Endpoint {
    /// Whether the server is closing.
    pub(super) fn is_closing(&self) -> bool {
        *self.phase.borrow() == ServerPhase::Closing
    }

    /// Resolves when the server closes or is dropped.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        closed(self.phase.clone())
    }
}

/// Resolves when the server closes or is dropped.
pub(super) async fn closed(mut phase: watch::Receiver<ServerPhase>) {
    let _ = phase.wait_for(|phase| *phase == ServerPhase::Closing).await;
}

async fn accept(
    router: Arc<Router>,
    listener: TcpListener,
    nodes: Option<(Arc<Nodes>, NodeListener)>,
    mut stopped: oneshot::Receiver<()>,
    phase: watch::Sender<ServerPhase>,
) {
    let mut background = JoinSet::new();
    // All endpoints share one table.
    let table = router.endpoints.first();
    let table = table.map(|service| service.endpoint.sessions.table().clone());
    if let Some(table) = &table {
        background.spawn(table.clone().sweep_periodically());
    }
    let admission = router.admission.clone();
    background.spawn(async move { admission.rate.remove_idle_callers().await });
    if let Some((nodes, listener)) = nodes {
        let admission = router.admission.clone();
        let counted = nodes.clone();
        background.spawn(async move { admission.rate.follow_nodes(&counted).await });
        background.spawn(listener.serve(nodes, router.clone(), phase.subscribe()));
    }
    let mut incoming = Acceptor {
        listener,
        router: router.clone(),
        rejected: VecDeque::new(),
        failing: false,
    };
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            stop = &mut stopped => match stop {
                Ok(()) => break,
                // The handle was dropped.
                Err(_) => return,
            },
            Some(_) = open.join_next() => {}
            stream = incoming.next() => if open.len() < router.max_connections {
                open.spawn(connection::serve(router.clone(), stream, phase.subscribe()));
            } else {
                incoming.reject(stream, router.no_connection());
            },
        }
    }
    phase.send_replace(ServerPhase::Closing);
    router.connections.wake();
    let drained = async { while open.join_next().await.is_some() {} };
    let drained = tokio::select! {
        drained = timeout(router.options.drain_timeout, drained) => drained.is_ok(),
        () = incoming.reject_all() => true,
    };
    drop(incoming);
    if !drained {
        if let Some(table) = &table {
            table.close_streams();
        }
        let ended = async { while open.join_next().await.is_some() {} };
        let _ = timeout(STREAM_END_TIMEOUT, ended).await;
    }
}

/// The listener, and the rejected connections. Dropping it closes both.
struct Acceptor {
    listener: TcpListener,
    router: Arc<Router>,
    /// In order of arrival.
    rejected: VecDeque<JoinHandle<()>>,
    /// Whether the last attempt to accept a connection failed.
    failing: bool,
}

impl Acceptor {
    /// The next connection. No error ends the server, because a lack of descriptors is temporary.
    async fn next(&mut self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.failing = false;
                    return stream;
                }
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "could not accept a connection");
                }
                Err(error) => {
                    if !self.failing {
                        tracing::warn!(%error, "cannot accept connections; trying again");
                    }
                    self.failing = true;
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Answers health checks on `stream`, and everything else by 503. The oldest rejected
    /// connection is closed if there are too many.
    fn reject(&mut self, stream: TcpStream, why: String) {
        self.rejected
            .retain(|rejected_task| !rejected_task.is_finished());
        if self.rejected.len() >= MAX_REJECTED_CONNECTIONS
            && let Some(oldest) = self.rejected.pop_front()
        {
            oldest.abort();
        }
        let rejected_task = connection::reject(self.router.clone(), stream, why);
        self.rejected.push_back(tokio::spawn(rejected_task));
    }

    /// Rejects all connections.
    async fn reject_all(&mut self) {
        loop {
            let stream = self.next().await;
            self.reject(stream, SHUTTING_DOWN.to_owned());
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        for rejected_task in &self.rejected {
            rejected_task.abort();
        }
    }
}

/// Whether an error concerns only the connection that was about to be accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// How long the last events of streams may take.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for a free descriptor before the next attempt to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The maximum of rejected connections. They use reserved descriptors.
const MAX_REJECTED_CONNECTIONS: usize = 8;
