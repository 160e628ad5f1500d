//! Which server, how it is shown who calls, and how long anything may take.

use std::time::Duration;

use outlast_wire::envelope::Limits;

use super::Session;

/// How a server is reached over HTTP.
#[derive(Clone)]
pub struct HttpClientOptions {
    /// The endpoint, such as `https://example.com/mcp`.
    pub url: String,
    /// The token that is sent as `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// Further headers of every request.
    pub headers: Vec<(String, String)>,
    /// Certificates that are trusted besides those of the system, in PEM.
    pub trust: Vec<u8>,
    /// The session to go on in, or the place where a new one is remembered: connections that have the same go on in
    /// each other's session. Without, each connection opens its own.
    pub session: Option<Session>,
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// How long the first request waits for the server to know that we listen. Some servers lose what they say while
    /// nobody listens; others answer only when they have something to say.
    pub listen: Duration,
    /// How many bytes a message of the server may have.
    pub message_bytes: usize,
    /// How long a message that wants no answer may take to be accepted, and a goodbye to be said.
    pub accept: Duration,
}

impl HttpClientOptions {
    /// The server at `url`, with patience of 10 seconds, a quarter of a second, and 30 seconds.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            bearer: None,
            headers: Vec::new(),
            trust: Vec::new(),
            session: None,
            connect: Duration::from_secs(10),
            listen: Duration::from_millis(250),
            message_bytes: Limits::default().bytes,
            accept: Duration::from_secs(30),
        }
    }

    /// The same with a token.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }
}

impl std::fmt::Debug for HttpClientOptions {
    /// Without token and headers, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClientOptions")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
