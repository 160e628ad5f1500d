//! One connection: it is served until it ends, is idle for too long, or the server closes.
//!
//! One timer per connection detects slow and idle clients; a timer per request would cost as much
//! as the request. A connection that reads bytes of a response is not idle, however slowly it
//! reads. Bytes that it sends do not count, so a head that never ends cannot keep it open.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::io::InspectWriter;

use super::router::Router;
use super::self_wake::SelfWakePoller;
use super::server::ServerPhase;
use super::service::PeerAddress;
use crate::server::Caller;

/// The open connections, which are woken when the server closes.
#[derive(Default)]
pub(super) struct Connections {
    wakers: Mutex<HashMap<usize, Waker>>,
    next: AtomicUsize,
}

/// Marks a connection as active until it is dropped.
pub(super) struct InFlightGuard(Arc<Activity>);

/// The activity of a connection.
struct Activity {
    address: PeerAddress,
    /// The caller of requests without a token.
    caller: Caller,
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    /// How often bytes of a response were written.
    writes: AtomicUsize,
}

impl Connections {
    /// The number of open connections.
    pub(super) fn count(&self) -> usize {
        let wakers = self.wakers.lock();
        wakers.len()
    }

    /// Wakes every connection so that it notices the shutdown.
    pub(super) fn wake(&self) {
        let wakers = self.wakers.lock();
        for waker in wakers.values() {
            waker.wake_by_ref();
        }
    }
}

/// Serves one connection.
pub(super) async fn serve(
    router: Arc<Router>,
    stream: TcpStream,
    mut phase: watch::Receiver<ServerPhase>,
) {
    // Responses are small and must be sent at once.
    let _ = stream.set_nodelay(true);
    // With large buffers a slow reader takes a megabyte before the next write, and seems idle until
    // then. An error here does not matter.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
    let address = stream.peer_addr().map(|address| address.ip());
    let activity = Arc::new(Activity::new(address.unwrap_or(UNKNOWN_ADDRESS)));
    let service = service_fn(|request: Request<Incoming>| {
        let (router, in_flight) = (router.clone(), activity.begin());
        // Boxed: hyper moves the future.
        Box::pin(async move { Ok::<_, Infallible>(router.answer(request, in_flight).await) })
    });
    let stream = InspectWriter::new(stream, |_| activity.wrote());
    let mut connection = pin!(
        http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            // Responses are small: one buffer is faster than a vectored write.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut tick = interval(router.options.client_timeout / 2);
    // After a pause of the whole process the client gets its full time again.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle_ticks = IdleTicks::default();
    let mut entry = None;
    let mut poller = SelfWakePoller::default();
    poll_fn(|cx| {
        if entry.is_none() {
            entry = Some(ConnectionEntry::new(
                &router.connections,
                cx.waker().clone(),
            ));
        }
        if phase.has_changed().unwrap_or(true) {
            phase.mark_unchanged();
            connection.as_mut().graceful_shutdown();
        }
        if poller.poll(connection.as_mut(), cx).is_ready() {
            return Poll::Ready(());
        }
        while tick.poll_tick(cx).is_ready() {
            if idle_ticks.exceeds_limit(&activity) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

/// Answers one request on a connection that is rejected because of `why`, and closes it.
pub(super) async fn reject(router: Arc<Router>, stream: TcpStream, why: String) {
    let service = service_fn(|request: Request<Incoming>| {
        let (router, why) = (router.clone(), why.clone());
        let (head, body) = request.into_parts();
        Box::pin(async move { Ok::<_, Infallible>(router.reject(&head, pin!(body), why).await) })
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // A connection error concerns only its client.
    let _ = timeout(REJECTION_TIMEOUT, connection).await;
}

impl Activity {
    fn new(address: IpAddr) -> Self {
        Self {
            address: PeerAddress(address),
            caller: Caller::from_address(address),
            begun: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
        }
    }

    fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    fn begin(self: &Arc<Self>) -> InFlightGuard {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }
}

impl InFlightGuard {
    /// The guard of a request that another listener has accepted.
    pub(super) fn outside_listener(address: Option<PeerAddress>) -> Self {
        let address = address.map_or(UNKNOWN_ADDRESS, |address| address.0);
        Arc::new(Activity::new(address)).begin()
    }

    /// The address of the peer.
    pub(super) fn address(&self) -> PeerAddress {
        self.0.address
    }

    /// The caller of a request without a token: the address of the peer.
    pub(super) fn caller(&self) -> Caller {
        self.0.caller.clone()
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a connection has been idle, in ticks.
#[derive(Default)]
struct IdleTicks {
    /// The number of requests and writes at the last tick.
    seen: (usize, usize),
    ticks: u32,
}

impl IdleTicks {
    fn exceeds_limit(&mut self, activity: &Activity) -> bool {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let seen = (count(&activity.begun), count(&activity.writes));
        if count(&activity.in_flight) > 0 || seen != self.seen {
            (self.seen, self.ticks) = (seen, 0);
            return false;
        }
        self.ticks += 1;
        // The first tick is immediate, and the second may follow the last response closely.
        self.ticks > 3
    }
}

/// An entry in [`Connections`], until it is dropped.
struct ConnectionEntry<'a>(&'a Connections, usize);

impl<'a> ConnectionEntry<'a> {
    fn new(connections: &'a Connections, waker: Waker) -> Self {
        let index = connections.next.fetch_add(1, Ordering::Relaxed);
        let mut wakers = connections.wakers.lock();
        wakers.insert(index, waker);
        Self(connections, index)
    }
}

impl Drop for ConnectionEntry<'_> {
    fn drop(&mut self) {
        let Self(connections, index) = self;
        connections.wakers.lock().remove(index);
    }
}

/// How many unsent bytes of a response the kernel buffers.
#[cfg(target_os = "linux")]
const MAX_UNSENT_BYTES: u32 = 64 << 10;

/// The address of a caller that has disconnected already.
const UNKNOWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The maximum size of the head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How long a rejected connection stays open.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(5);
