//! The options of an HTTP client: URL, credentials and timeouts.

use std::time::Duration;

use outlast_wire::envelope::Limits;

use super::HttpSession;

/// How to reach a server over HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpClientOptions {
    /// The endpoint, such as `https://example.com/mcp`.
    pub url: String,
    /// The token that is sent as `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// Further headers of every request.
    pub headers: Vec<(String, String)>,
    /// Additional trusted root certificates, in PEM.
    pub trusted_certificates: Vec<u8>,
    /// The session to resume, or where a new one is stored. Connections with the same value share a
    /// session. Without it, each connection opens its own.
    pub session: Option<HttpSession>,
    /// The timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// How long the first request waits for the general stream. Some servers lose messages while it
    /// is not open; others respond to it only with their first message.
    pub listen_timeout: Duration,
    /// The maximum size of a message from the server.
    pub max_message_bytes: usize,
    /// The timeout of a message without a response, and of the DELETE of a session.
    pub accept_timeout: Duration,
}

outlast_engine::option_setters! { HttpClientOptions:
    set with_headers(headers: Vec<(String, String)>);
    set with_trusted_certificates(trusted_certificates: Vec<u8>);
    maybe with_session(session: HttpSession);
    set with_connect_timeout(connect_timeout: Duration);
    set with_listen_timeout(listen_timeout: Duration);
    set with_max_message_bytes(max_message_bytes: usize);
    set with_accept_timeout(accept_timeout: Duration);
}

impl HttpClientOptions {
    /// The server at `url`, with timeouts of 10 s to connect, 250 ms to listen and 30 s to accept.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            bearer: None,
            headers: Vec::new(),
            trusted_certificates: Vec::new(),
            session: None,
            connect_timeout: Duration::from_secs(10),
            listen_timeout: Duration::from_millis(250),
            max_message_bytes: Limits::default().bytes,
            accept_timeout: Duration::from_secs(30),
        }
    }

    /// Sets the bearer token.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }
}

impl std::fmt::Debug for HttpClientOptions {
    /// Omits token and headers, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClientOptions")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
