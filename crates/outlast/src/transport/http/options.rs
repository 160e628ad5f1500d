//! Where an HTTP server listens, whom it lets in, and what it puts up with.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use outlast_wire::headers::OnMissingName;
use sha2::{Digest, Sha256};

/// How an HTTP server is set up. The default listens on loopback, on a free port, without tokens.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The path of the endpoint.
    pub path: String,
    /// Who may come in, and under which name. Without any, everybody who reaches the address may, and
    /// each session is an owner of its own.
    pub tokens: Vec<Token>,
    /// Web pages that may call besides those of this machine, such as `https://example.com`.
    pub allowed_origins: Vec<String>,
    /// Names under which this server is known besides those of loopback, without a port.
    pub allowed_hosts: Vec<String>,
    /// What becomes of a modern task method whose header does not name the task.
    pub task_names: OnMissingName,
    /// How long a session without requests, streams and tasks is kept, unless its place is needed.
    pub idle: Duration,
    /// The most sessions at once. The one that is idle for longest makes room; one with an open request, stream or task
    /// never does.
    pub sessions: usize,
    /// The most sessions of one principal, and of one address without tokens.
    pub sessions_per_owner: usize,
    /// The most requests and streams of one session that are open at once.
    pub streams: usize,
    /// The most connections at once, if the limit of open files allows them: a quarter of it, at least 40, is kept for
    /// the store and other files. More get health checks and 503.
    pub connections: usize,
    /// The most bytes of requests that have not arrived in full, of all connections together. The first 64 KiB of each
    /// are not counted.
    pub body_bytes: usize,
    /// The most requests per second of one principal, and of one address without tokens. After a quiet time twice as
    /// many are taken at once. `None`: any number.
    pub requests_per_second: Option<NonZeroU32>,
    /// How long a client may take for the head of a request, for its body, and between two requests, and how long it may
    /// take no byte of a response.
    pub patience: Duration,
    /// How often a silent stream shows that it lives.
    pub keep_alive: Duration,
    /// After how long the caller of a tool is answered by a stream, so that the connection is seen to live.
    pub hold: Duration,
    /// After how long a stream is closed in the middle; its client comes back for the rest when it was told to.
    /// For machines in between that cut long connections off. `None`: a stream goes on as long as it must.
    pub longest_stream: Option<Duration>,
    /// How long open requests may go on when the server is shut down.
    pub drain: Duration,
}

/// A secret that lets a caller in under a name. Only its hash is kept.
#[derive(Clone)]
pub struct Token {
    pub(super) name: String,
    pub(super) hash: [u8; 32],
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            path: "/mcp".into(),
            tokens: Vec::new(),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            task_names: OnMissingName::default(),
            idle: Duration::from_secs(3_600),
            sessions: 10_000,
            sessions_per_owner: 1_000,
            streams: 256,
            connections: 10_000,
            body_bytes: 256 << 20,
            requests_per_second: NonZeroU32::new(1_000),
            patience: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            hold: Duration::from_secs(1),
            longest_stream: None,
            drain: Duration::from_secs(10),
        }
    }
}

impl Token {
    /// The token `secret` of the principal `name`.
    pub fn new(name: impl Into<String>, secret: &str) -> Self {
        Self::hashed(name, hash(secret.as_bytes()))
    }

    /// The token of the principal `name` whose SHA-256 is `hash`.
    pub fn hashed(name: impl Into<String>, hash: [u8; 32]) -> Self {
        Self {
            name: name.into(),
            hash,
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token({})", self.name)
    }
}

pub(super) fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}
