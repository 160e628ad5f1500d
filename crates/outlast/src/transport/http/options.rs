//! The options of an HTTP server: address, access and limits.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::headers::OnMissingName;

use super::authenticate::Authenticate;
use super::fallback::Fallback;
use super::nodes::NodeOptions;
use crate::server::SessionLimits;

/// The options of an HTTP server. The default listens on loopback, on a free port, without tokens.
///
/// ```
/// use std::time::Duration;
/// use outlast::Server;
/// use outlast::transport::http::HttpOptions;
///
/// let options = HttpOptions::default()
///     .with_allowed_hosts(vec!["mcp.example.com".into()])
///     .with_session_idle_timeout(Duration::from_secs(600));
/// let server = Server::builder("reports", "1.0").http(options).build();
/// # drop(server);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The address to listen on.
    pub bind: SocketAddr,
    /// The path of the endpoint.
    pub path: String,
    /// Finds out who sends a request, such as [`BearerTokens`](super::BearerTokens). `None`: every
    /// caller is admitted, and each session is a separate owner.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// Serves the paths that are neither an endpoint nor a page of the listener, such as a web
    /// console. Without it, they are not found.
    pub fallback: Option<Fallback>,
    /// Lets other nodes on the same store forward requests to this one, so that clients need no
    /// sticky sessions. `None`: clients of 2025-11-25 must always reach the same node.
    pub nodes: Option<NodeOptions>,
    /// Allowed origins of web pages, such as `https://example.com`. Loopback origins are always
    /// allowed.
    pub allowed_origins: Vec<String>,
    /// Allowed host names, without a port. Loopback names are always allowed.
    pub allowed_hosts: Vec<String>,
    /// What to do with a modern task method whose headers do not name the task.
    pub on_missing_task_name: OnMissingName,
    /// How long a session without requests, streams and tasks is retained, unless its slot is
    /// needed.
    pub session_idle_timeout: Duration,
    /// The maximum of sessions. A new session replaces the one that is idle for longest; a session
    /// with an open request, stream or task is never replaced.
    pub max_sessions: usize,
    /// The maximum of sessions of one principal, or of one address without tokens.
    pub max_sessions_per_owner: usize,
    /// The maximum of open requests and streams of one session.
    pub max_streams_per_session: usize,
    /// The maximum of connections. A quarter of the limit of open files, at least 40, is reserved
    /// for the store and other files, which can reduce this value. A further connection may
    /// send one request: a health check is answered, any other request gets 503.
    pub max_connections: usize,
    /// The maximum size of all unfinished request bodies together. The first 64 KiB of each do not
    /// count.
    pub max_unfinished_body_bytes: usize,
    /// The maximum of requests per second of one principal, or of one address without tokens. An
    /// idle caller can send twice as many at once. `None`: no limit.
    pub max_requests_per_second: Option<NonZeroU32>,
    /// The timeout for the head of a request, for its body, between two requests, and for a client
    /// that reads no byte of a response.
    pub client_timeout: Duration,
    /// The interval of keep-alive comments on an idle stream.
    pub keep_alive_interval: Duration,
    /// After how long a tool call is answered by a stream, which keeps the connection alive.
    pub stream_after: Duration,
    /// After how long a stream is closed before its end; its client reconnects to get the rest. For
    /// proxies that cut off long connections. `None`: no limit.
    pub max_stream_duration: Option<Duration>,
    /// How long open requests may continue when the server is shut down.
    pub drain_timeout: Duration,
}

outlast_engine::option_setters! { HttpOptions:
    set with_bind(bind: SocketAddr);
    text with_path(path: String);
    maybe with_authenticate(authenticate: Arc<dyn Authenticate>);
    maybe with_fallback(fallback: Fallback);
    maybe with_nodes(nodes: NodeOptions);
    set with_allowed_origins(allowed_origins: Vec<String>);
    set with_allowed_hosts(allowed_hosts: Vec<String>);
    set with_on_missing_task_name(on_missing_task_name: OnMissingName);
    set with_session_idle_timeout(session_idle_timeout: Duration);
    set with_max_sessions(max_sessions: usize);
    set with_max_sessions_per_owner(max_sessions_per_owner: usize);
    set with_max_streams_per_session(max_streams_per_session: usize);
    set with_max_connections(max_connections: usize);
    set with_max_unfinished_body_bytes(max_unfinished_body_bytes: usize);
    maybe with_max_requests_per_second(max_requests_per_second: NonZeroU32);
    set with_client_timeout(client_timeout: Duration);
    set with_keep_alive_interval(keep_alive_interval: Duration);
    set with_stream_after(stream_after: Duration);
    maybe with_max_stream_duration(max_stream_duration: Duration);
    set with_drain_timeout(drain_timeout: Duration);
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            path: "/mcp".into(),
            authenticate: None,
            fallback: None,
            nodes: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            on_missing_task_name: OnMissingName::default(),
            session_idle_timeout: Duration::from_secs(3_600),
            max_sessions: 10_000,
            max_sessions_per_owner: 1_000,
            max_streams_per_session: 256,
            max_connections: 10_000,
            max_unfinished_body_bytes: 256 << 20,
            max_requests_per_second: NonZeroU32::new(1_000),
            client_timeout: Duration::from_secs(30),
            keep_alive_interval: Duration::from_secs(15),
            stream_after: Duration::from_secs(1),
            max_stream_duration: None,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

impl HttpOptions {
    pub(super) fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            max_sessions: self.max_sessions,
            max_sessions_per_owner: self.max_sessions_per_owner,
            max_streams: self.max_streams_per_session,
            idle_ms: self.session_idle_timeout.as_millis() as u64,
            is_shared: self.nodes.is_some(),
        }
    }
}

impl fmt::Debug for dyn Authenticate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authenticate")
    }
}
