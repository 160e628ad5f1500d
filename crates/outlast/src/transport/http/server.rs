//! The endpoint and the loop that accepts connections.

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
use super::guard::Guard;
use super::health::SHUTTING_DOWN;
use super::options::HttpOptions;
use super::rate::RequestRate;
use super::router::{Pages, Router};
use super::sse::Life;
use crate::server::{McpServer, SessionLimits, SessionTable, Sessions};

/// A server that listens. It ends when it is shut down or dropped.
pub struct HttpServer {
    address: SocketAddr,
    path: String,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

/// Serves `front` over HTTP until the server is shut down or dropped.
pub async fn serve(front: Arc<McpServer>, options: HttpOptions) -> io::Result<HttpServer> {
    let path = options.path.clone();
    serve_all(vec![(path, front)], None, options).await
}

/// The same for several fronts of one engine, each at a path of its own, and for pages beside them.
pub async fn serve_all(
    fronts: Vec<(String, Arc<McpServer>)>,
    pages: Option<Arc<dyn Pages>>,
    options: HttpOptions,
) -> io::Result<HttpServer> {
    let listener = TcpListener::bind(options.bind).await?;
    let address = listener.local_addr()?;
    let (phase, seen) = watch::channel(Phase::Open);
    let bodies = Arc::new(UnfinishedBodies::new(options.body_bytes));
    let mut endpoints = Vec::new();
    let mut table = None;
    for (path, front) in fronts {
        let table = match &table {
            Some(table) => Arc::clone(table),
            None => {
                let bounds = SessionLimits {
                    max_sessions: options.sessions,
                    max_sessions_per_owner: options.sessions_per_owner,
                    max_streams: options.streams,
                    idle_ms: options.idle.as_millis() as u64,
                };
                let loaded = SessionTable::load(front.engine.clone(), bounds).await;
                table.insert(loaded.map_err(io::Error::other)?).clone()
            }
        };
        endpoints.push(Arc::new(Endpoint {
            path,
            sessions: Sessions::new(front, table),
            bodies: bodies.clone(),
            life: Life(RandomIds.node().0),
            phase: seen.clone(),
            options: options.clone(),
        }));
    }
    let path = options.path.clone();
    let router = Arc::new(Router {
        guard: Guard::new(&options, address),
        endpoints,
        pages,
        connections: Connections::default(),
        bodies,
        rate: RequestRate::new(options.requests_per_second),
        max_connections: descriptors::max_connections(options.connections),
        options,
    });
    let (stop, stopped) = oneshot::channel();
    Ok(HttpServer {
        address,
        path,
        stop,
        accepting: tokio::spawn(accept(router, listener, stopped, phase)),
    })
}

impl HttpServer {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address of the endpoint, for clients on this machine.
    pub fn url(&self) -> String {
        self.url_of(&self.path)
    }

    /// The address of whatever is at `path`, for clients on this machine.
    pub fn url_of(&self, path: &str) -> String {
        let mut address = self.address;
        // A server that listens on every address is reached at the loopback one.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{address}{path}")
    }

    /// Lets open requests finish for a while and ends. Meanwhile new connections get health checks and 503; clients come
    /// back for the rest of their streams.
    ///
    /// An engine that shuts down before this is called refuses new requests and serves those about its tasks.
    pub async fn shutdown(self) {
        let _ = self.stop.send(());
        if let Err(error) = self.accepting.await {
            tracing::warn!(%error, "the server did not end well");
        }
    }
}

/// How a server stands towards requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Closing,
}

/// What every request needs.
pub(super) struct Endpoint {
    pub(super) path: String,
    pub(super) sessions: Sessions,
    pub(super) bodies: Arc<UnfinishedBodies>,
    pub(super) life: Life,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) options: HttpOptions,
}

impl Endpoint {
    /// Whether the server closes.
    pub(super) fn is_closing(&self) -> bool {
        *self.phase.borrow() == Phase::Closing
    }

    /// Resolves when the server closes, or is gone.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        closed(self.phase.clone())
    }
}

/// Resolves when the server closes, or is gone.
pub(super) async fn closed(mut phase: watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
}

async fn accept(
    router: Arc<Router>,
    listener: TcpListener,
    mut stopped: oneshot::Receiver<()>,
    phase: watch::Sender<Phase>,
) {
    let mut background = JoinSet::new();
    // All endpoints share one table.
    let table = router.endpoints.first();
    let table = table.map(|endpoint| endpoint.sessions.table().clone());
    if let Some(table) = &table {
        background.spawn(table.clone().sweep_periodically());
    }
    let rate = router.clone();
    background.spawn(async move { rate.rate.keep_small().await });
    let mut incoming = Incomings {
        listener,
        router: router.clone(),
        turned_away: VecDeque::new(),
        failing: false,
    };
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            told = &mut stopped => match told {
                Ok(()) => break,
                // The handle was dropped: so is everything else.
                Err(_) => return,
            },
            Some(_) = open.join_next() => {}
            stream = incoming.next() => if open.len() < router.max_connections {
                open.spawn(connection::serve(router.clone(), stream, phase.subscribe()));
            } else {
                incoming.turn_away(stream, router.no_connection());
            },
        }
    }
    phase.send_replace(Phase::Closing);
    router.connections.wake();
    let drained = async { while open.join_next().await.is_some() {} };
    let drained = tokio::select! {
        drained = timeout(router.options.drain, drained) => drained.is_ok(),
        () = incoming.turn_all_away() => true,
    };
    drop(incoming);
    if !drained {
        if let Some(table) = &table {
            table.close_streams();
        }
        let ended = async { while open.join_next().await.is_some() {} };
        let _ = timeout(LAST_WORDS, ended).await;
    }
}

/// The connections that arrive, and those that are not served. Dropping this closes both.
struct Incomings {
    listener: TcpListener,
    router: Arc<Router>,
    /// The oldest first.
    turned_away: VecDeque<JoinHandle<()>>,
    /// Whether no connection could be accepted at the last attempt.
    failing: bool,
}

impl Incomings {
    /// The next connection. No error ends the server: a lack of descriptors passes.
    async fn next(&mut self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.failing = false;
                    return stream;
                }
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                }
                Err(error) => {
                    if !self.failing {
                        tracing::warn!(%error, "no connection can be accepted");
                    }
                    self.failing = true;
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Answers health checks on `stream`, and everything else by 503. The oldest of these connections makes room.
    fn turn_away(&mut self, stream: TcpStream, why: String) {
        self.turned_away.retain(|turned| !turned.is_finished());
        if self.turned_away.len() >= MAX_TURNED_AWAY
            && let Some(oldest) = self.turned_away.pop_front()
        {
            oldest.abort();
        }
        let turned = connection::turn_away(self.router.clone(), stream, why);
        self.turned_away.push_back(tokio::spawn(turned));
    }

    /// Serves no connection any more.
    async fn turn_all_away(&mut self) {
        loop {
            let stream = self.next().await;
            self.turn_away(stream, SHUTTING_DOWN.to_owned());
        }
    }
}

impl Drop for Incomings {
    fn drop(&mut self) {
        for turned in &self.turned_away {
            turned.abort();
        }
    }
}

/// Whether only the connection is gone that was about to be accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// How long the ends of streams may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long to wait for a free descriptor before the next attempt to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The most connections that are answered although they are not served. They take reserved descriptors.
const MAX_TURNED_AWAY: usize = 8;
