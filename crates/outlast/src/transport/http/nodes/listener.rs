//! The listener for requests that other nodes forward.
//!
//! A request without a valid pass gets 403, and its body is not read. A request that this node is
//! not the home of gets 421: a request is forwarded once.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::http::uri::PathAndQuery;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::super::connection::InFlightGuard;
use super::super::rejection::Rejection;
use super::super::response::{self, HttpResponse};
use super::super::router::Router;
use super::super::server::{ServerPhase, closed};
use super::super::service::PeerAddress;
use super::forward::session_of;
use super::pass::{PASS, Pass, request_name};
use super::{NodeOptions, Nodes};

/// The open listener of this node for the others.
pub(in crate::transport::http) struct NodeListener {
    listener: TcpListener,
    /// Under which the other nodes reach it.
    address: String,
}

impl NodeListener {
    pub(in crate::transport::http) async fn bind(options: &NodeOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.bind).await.map_err(|error| {
            let why = format!("cannot listen for other nodes on {}: {error}", options.bind);
            io::Error::new(error.kind(), why)
        })?;
        let address = match &options.advertise {
            Some(address) => address.clone(),
            None => listener.local_addr()?.to_string(),
        };
        Ok(Self { listener, address })
    }

    /// Serves until the server closes, and then until open requests have ended.
    pub(in crate::transport::http) async fn serve(
        self,
        nodes: Arc<Nodes>,
        router: Arc<Router>,
        phase: watch::Receiver<ServerPhase>,
    ) {
        let publishing = {
            let (nodes, address) = (nodes.clone(), self.address);
            async move { nodes.publish(&address).await }
        };
        let mut open = JoinSet::new();
        open.spawn(publishing);
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut closing = pin!(closed(phase.clone()));
        loop {
            let next = async {
                let permit = permits.clone().acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut closing => break,
                Some(_) = open.join_next(), if !open.is_empty() => continue,
                accepted = next => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (nodes, router, phase) = (nodes.clone(), router.clone(), phase.clone());
                    open.spawn(async move {
                        serve_connection(nodes, router, stream, phase).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "could not accept a connection of another node");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        while open.join_next().await.is_some() {}
    }
}

async fn serve_connection(
    nodes: Arc<Nodes>,
    router: Arc<Router>,
    stream: TcpStream,
    phase: watch::Receiver<ServerPhase>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let (nodes, router) = (nodes.clone(), router.clone());
        Box::pin(async move { Ok::<_, Infallible>(answer(&nodes, &router, request).await) })
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        // An error concerns only this connection.
        _ = connection.as_mut() => {}
        () = closed(phase) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn answer(nodes: &Nodes, router: &Router, request: Request<Incoming>) -> HttpResponse {
    match admit(nodes, &request).await {
        Ok(pass) => {
            let mut request = request;
            request.headers_mut().remove(PASS);
            let in_flight = InFlightGuard::outside_listener(Some(PeerAddress(pass.address)));
            router.answer_forwarded(request, pass, in_flight).await
        }
        Err(rejected) => rejected,
    }
}

async fn admit(nodes: &Nodes, request: &Request<Incoming>) -> Result<Pass, HttpResponse> {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", PathAndQuery::as_str);
    let name = request_name(request.method(), path, session_of(request.headers()));
    let pass = request.headers().get(PASS);
    let pass = pass.and_then(|pass| pass.to_str().ok()).unwrap_or_default();
    match nodes.open_pass(pass, &name).await {
        Ok(Some(pass)) => Ok(pass),
        Ok(None) => Err(response::text(
            StatusCode::FORBIDDEN,
            "this listener is for other nodes of the same store\n".to_owned(),
        )),
        Err(error) => Err(Rejection::Unavailable(None, error.to_string()).answer()),
    }
}

/// The maximum of connections from other nodes. Each request of a client uses one of them.
const MAX_CONNECTIONS: usize = 4_096;

/// The maximum size of the head of a request: that of a client, and the pass.
const MAX_HEAD_BYTES: usize = 80 << 10;

/// How long the head of a request may take, and how long a connection may be unused.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// How long to wait for a free descriptor before the next attempt to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
