//! The endpoint of one MCP server as a [`tower::Service`](tower_service::Service).
//!
//! [`HttpService::answer`] is the only way of a request to its endpoint: [`Admission`] checks host,
//! origin, identity and rate, then the HTTP method decides. The listener of this crate and a router
//! of another program use the same code. Listening, connection limits, health checks and other
//! pages belong to the listener.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::ORIGIN;
use hyper::{Method, Request};
use outlast_engine::{Ids, RandomIds};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::authenticate::Authenticate;
use super::bodies::UnfinishedBodies;
use super::connection::InFlightGuard;
use super::cors;
use super::guard::{Guard, McpHeaders};
use super::home::AdmittedRequest;
use super::options::HttpOptions;
use super::rate::RequestRate;
use super::rejection::Rejection;
use super::response::HttpResponse;
use super::server::{Endpoint, ServerPhase};
use super::sse::ServerEpoch;
use crate::server::{HttpParts, Identity, McpServer, SessionTable, Sessions};

/// The address of the client, as an extension of a request.
///
/// Without it, all anonymous callers of a mounted [`HttpService`] count as one for limits. A layer
/// that knows the address, such as one that reads axum's `ConnectInfo`, inserts it.
///
/// ```
/// use std::net::SocketAddr;
/// use outlast::transport::http::PeerAddress;
///
/// /// For `axum::middleware::from_fn`, in front of the endpoint.
/// async fn peer(
///     axum::extract::ConnectInfo(from): axum::extract::ConnectInfo<SocketAddr>,
///     mut request: axum::extract::Request,
///     next: axum::middleware::Next,
/// ) -> axum::response::Response {
///     request.extensions_mut().insert(PeerAddress(from.ip()));
///     next.run(request).await
/// }
/// # let _ = peer;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// An MCP endpoint that can be mounted in any tower router. It ignores the path.
#[derive(Clone)]
pub struct HttpService {
    pub(super) admission: Arc<Admission>,
    pub(super) endpoint: Arc<Endpoint>,
    /// `None` if a listener owns the endpoint.
    mounted: Option<Arc<Mounted>>,
}

/// What a service without a listener owns. Dropping it ends the background work.
struct Mounted {
    phase: watch::Sender<ServerPhase>,
    _background: JoinSet<()>,
}

/// The checks before a request reaches an endpoint.
pub(super) struct Admission {
    pub(super) guard: Guard,
    pub(super) rate: RequestRate,
    authenticate: Option<Arc<dyn Authenticate>>,
}

/// The endpoint of `server`, without a listener. Call it inside a Tokio runtime.
///
/// The options that concern a listener (`bind`, `path`, `nodes`, `max_connections`,
/// `drain_timeout`) have no effect.
pub fn service(server: Arc<McpServer>, options: HttpOptions) -> HttpService {
    let (phase, seen) = watch::channel(ServerPhase::Open);
    let table = SessionTable::new(server.engine.clone(), options.session_limits());
    let admission = Arc::new(Admission::new(&options, None));
    let mut background = JoinSet::new();
    background.spawn(table.clone().sweep_periodically());
    let rate = admission.clone();
    background.spawn(async move { rate.rate.remove_idle_callers().await });
    let bodies = UnfinishedBodies::new(options.max_unfinished_body_bytes);
    let endpoint = Endpoint {
        path: options.path.clone(),
        sessions: Sessions::new(server, table),
        bodies: Arc::new(bodies),
        epoch: ServerEpoch(RandomIds.node().0),
        phase: seen,
        options,
        nodes: None,
    };
    HttpService {
        admission,
        endpoint: Arc::new(endpoint),
        mounted: Some(Arc::new(Mounted {
            phase,
            _background: background,
        })),
    }
}

impl HttpService {
    /// The service of an endpoint that a listener owns.
    pub(super) fn of_listener(admission: Arc<Admission>, endpoint: Arc<Endpoint>) -> Self {
        Self {
            admission,
            endpoint,
            mounted: None,
        }
    }

    /// Ends open streams, so that their connections can close. Clients can resume them after a
    /// restart. The listener of this crate does this itself.
    pub fn close(&self) {
        if let Some(mounted) = &self.mounted {
            mounted.phase.send_replace(ServerPhase::Closing);
            self.endpoint.sessions.table().close_streams();
        }
    }

    /// Answers one request.
    pub(super) async fn answer<B>(
        &self,
        head: &Arc<HttpParts>,
        body: Pin<&mut B>,
        in_flight: InFlightGuard,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send,
    {
        let routed = self.route(head, body, in_flight).await;
        let answer = routed.unwrap_or_else(Rejection::answer);
        self.admission.with_cors(head, answer)
    }

    async fn route<B>(
        &self,
        head: &Arc<HttpParts>,
        body: Pin<&mut B>,
        in_flight: InFlightGuard,
    ) -> Result<HttpResponse, Rejection>
    where
        B: Body<Data = Bytes> + Send,
    {
        let Some(caller) = self.admission.admit(head, &in_flight).await? else {
            return Ok(cors::preflight(&head.headers));
        };
        let request = AdmittedRequest {
            caller,
            head,
            in_flight,
            is_forwarded: false,
        };
        self.endpoint.answer(request, body).await
    }

    /// Answers a request that another node has admitted.
    pub(super) async fn answer_forwarded<B>(
        &self,
        request: AdmittedRequest<'_>,
        body: Pin<&mut B>,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send,
    {
        let answer = self.endpoint.answer(request, body).await;
        answer.unwrap_or_else(Rejection::answer)
    }
}

impl Endpoint {
    /// Answers an admitted request by its HTTP method.
    async fn answer<B>(
        &self,
        request: AdmittedRequest<'_>,
        body: Pin<&mut B>,
    ) -> Result<HttpResponse, Rejection>
    where
        B: Body<Data = Bytes> + Send,
    {
        match request.head.method {
            Method::POST => self.post(request, body).await,
            // V2-HTTP-7.
            _ if McpHeaders::read(&request.head.headers).is_modern() => {
                Err(Rejection::Method(MODERN_METHODS))
            }
            // Boxed: most requests are POSTs, and their future stays small.
            Method::GET => Box::pin(self.get(request)).await,
            Method::DELETE => Box::pin(self.delete(request)).await,
            _ => Err(Rejection::Method(LEGACY_METHODS)),
        }
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        let (head, body) = request.into_parts();
        let address = head.extensions.get::<PeerAddress>().copied();
        let in_flight = InFlightGuard::outside_listener(address);
        let head = Arc::new(head);
        Box::pin(async move { Ok(service.answer(&head, pin!(body), in_flight).await) })
    }
}

impl Admission {
    /// `bound`: the address of the listener, by which it can be reached.
    pub(super) fn new(options: &HttpOptions, bound: Option<IpAddr>) -> Self {
        Self {
            guard: Guard::new(options, bound),
            rate: RequestRate::new(options.max_requests_per_second),
            authenticate: options.authenticate.clone(),
        }
    }

    /// Admits a request and finds its identity, or rejects it; `None` for a preflight request.
    pub(super) async fn admit(
        &self,
        head: &HttpParts,
        in_flight: &InFlightGuard,
    ) -> Result<Option<Identity>, Rejection> {
        // A browser sends its preflight request without the token of the page.
        let admitted = match self.guard.admit_host_and_origin(&head.uri, &head.headers) {
            Err(rejected) => Err(rejected),
            Ok(()) if head.method == Method::OPTIONS => Ok(None),
            Ok(()) => self.identify(head).await.map(Some),
        };
        let visitor = in_flight.caller();
        let principal = admitted.as_ref().ok().and_then(Option::as_ref);
        let principal = principal.and_then(Identity::owner);
        self.rate
            .admit(principal.unwrap_or_else(|| visitor.owner()))?;
        admitted
    }

    async fn identify(&self, head: &HttpParts) -> Result<Identity, Rejection> {
        let Some(authenticate) = &self.authenticate else {
            return Ok(Identity::anonymous());
        };
        Guard::check_credentials(&head.headers)?;
        let identity = authenticate.authenticate(head).await;
        identity.map_err(Rejection::Unauthenticated)
    }

    /// Lets a page of an allowed origin read the response.
    pub(super) fn with_cors(&self, head: &HttpParts, mut answer: HttpResponse) -> HttpResponse {
        let origin = head.headers.get(ORIGIN);
        if let Some(origin) = origin.filter(|origin| self.guard.is_allowed_origin(origin)) {
            cors::allow_origin(&mut answer, origin.clone());
        }
        answer
    }
}

/// The HTTP methods for a modern client.
const MODERN_METHODS: &str = "POST, OPTIONS";

/// The HTTP methods for a legacy client.
const LEGACY_METHODS: &str = "GET, POST, DELETE, OPTIONS";
