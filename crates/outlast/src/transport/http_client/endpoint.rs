//! One endpoint, with the session, version and token of every request. Only redirects within the
//! origin are followed.

use std::net::IpAddr;
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast_wire::headers;
use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Method, Request, Response, StatusCode, Url, redirect, retry};
#[cfg(feature = "tls")]
use rustls::pki_types::CertificateDer;
#[cfg(feature = "tls")]
use rustls::pki_types::pem::PemObject;
#[cfg(feature = "tls")]
use rustls::{ClientConfig, RootCertStore};

use super::post::explanation;
use super::{HttpClientOptions, HttpSession};
use crate::transport::link::{OutgoingMessage, TransportError};

pub(super) struct Endpoint {
    client: Client,
    fixed: HeaderMap,
    pub(super) accept: Duration,
    /// The maximum size of a message from the server.
    pub(super) limit: usize,
    shared_session: Option<HttpSession>,
    state: Mutex<State>,
}

struct State {
    url: Url,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Endpoint {
    pub(super) fn new(options: &HttpClientOptions) -> Result<Self, TransportError> {
        let invalid = |why: &dyn std::fmt::Display| {
            // The URL can contain a secret, so it is not shown.
            TransportError::Unreachable(format!("the URL is not valid: {why}"))
        };
        let url: Url = options.url.parse().map_err(|error| invalid(&error))?;
        if !url.has_host() || !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(&"it must begin with http:// or https://"));
        }
        let mut fixed = HeaderMap::new();
        for (name, value) in &options.headers {
            let name = HeaderName::try_from(name).map_err(|error| invalid(&error))?;
            let value = HeaderValue::try_from(value).map_err(|error| invalid(&error))?;
            fixed.insert(name, value);
        }
        if let Some(token) = &options.bearer {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| {
                invalid(&"the token contains characters that are not allowed in a header")
            })?;
            value.set_sensitive(true);
            fixed.insert(AUTHORIZATION, value);
        }
        let client = client(&url, options).map_err(|error| invalid(&error))?;
        let known = options.session.as_ref().and_then(HttpSession::id);
        Ok(Self {
            client,
            fixed,
            accept: options.accept_timeout,
            limit: options.max_message_bytes,
            shared_session: options.session.clone(),
            state: Mutex::new(State {
                url,
                session: known.and_then(|id| secret(&id)),
                version: None,
            }),
        })
    }

    /// Sends one message. Resolves when the headers of the response have arrived.
    pub(super) async fn post(&self, message: &OutgoingMessage) -> Result<Response, TransportError> {
        let mut extra = HeaderMap::new();
        extra.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // V1-HTTP-5.
        extra.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        for (name, value) in &message.headers {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                extra.insert(name, value);
            }
        }
        let body = Bytes::copy_from_slice(message.line.as_bytes());
        self.send(Method::POST, extra, body).await
    }

    /// Opens the general stream, or resumes a stream after the last received event (V1-RESUME-4).
    pub(super) async fn get(&self, seen: Option<&str>) -> Result<Response, TransportError> {
        let mut extra = HeaderMap::new();
        extra.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(Ok(seen)) = seen.map(HeaderValue::try_from) {
            extra.insert(headers::LAST_EVENT_ID, seen);
        }
        self.send(Method::GET, extra, Bytes::new()).await
    }

    /// Ends the session, if there is one (V1-SESS-6). Errors are ignored.
    pub(super) async fn end_session(&self) {
        if self.has_session()
            && !self
                .shared_session
                .as_ref()
                .is_some_and(HttpSession::is_kept)
        {
            let delete = self.send(Method::DELETE, HeaderMap::new(), Bytes::new());
            let _ = tokio::time::timeout(self.accept.min(DELETE_TIMEOUT), delete).await;
        }
    }

    /// Stores the session that the server opened (V1-SESS-1).
    pub(super) fn store_session(&self, response: &Response) {
        let session = response.headers().get(headers::SESSION_ID).cloned();
        let visible =
            session.filter(|id| id.as_bytes().iter().all(|byte| (0x21..0x7f).contains(byte)));
        let id = visible.as_ref().and_then(|id| id.to_str().ok());
        if let Some(shared_session) = &self.shared_session {
            shared_session.opened(id);
        }
        self.state().session = id.and_then(secret);
    }

    /// Stores the negotiated version, which every later request names (V1-HTTP-10).
    pub(super) fn set_version(&self, version: &str) {
        self.state().version = HeaderValue::try_from(version).ok();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().version.is_some()
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// A text of the server without the session id, which gives access.
    pub(super) fn without_session(&self, text: &str) -> String {
        let state = self.state();
        let session = state.session.as_ref().and_then(|id| id.to_str().ok());
        match session.filter(|id| !id.is_empty()) {
            Some(id) => text.replace(id, "(session id)"),
            None => text.to_owned(),
        }
    }

    /// The error for an HTTP status that is not a success.
    pub(super) async fn rejection(&self, response: Response) -> TransportError {
        let status = response.status();
        let retry_after = retry_after(&response);
        // V1-SESS-5.
        if status == StatusCode::NOT_FOUND && self.has_session() {
            return TransportError::SessionGone;
        }
        let read = tokio::time::timeout(self.accept, read_whole(response, MAX_DETAIL_BYTES));
        let detail = match read.await {
            Ok(Ok(body)) => explanation(&self.without_session(&String::from_utf8_lossy(&body))),
            _ => String::new(),
        };
        TransportError::Refused {
            status: status.as_u16(),
            detail,
            retry_after,
            error: None,
        }
    }

    async fn send(
        &self,
        method: Method,
        extra: HeaderMap,
        body: Bytes,
    ) -> Result<Response, TransportError> {
        for _ in 0..MAX_REDIRECTS {
            let request = self.request(&method, &extra, body.clone());
            let from = request.url().clone();
            let sent = self.client.execute(request).await;
            let response = sent.map_err(|error| {
                if error.is_connect() {
                    // Path and query can contain a secret.
                    let origin = from.origin().ascii_serialization();
                    TransportError::Unreachable(format!("{origin}: {}", error_chain(error)))
                } else {
                    TransportError::Broken(error_chain(error))
                }
            })?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            self.follow(&from, &response)?;
        }
        Err(TransportError::Redirected("itself repeatedly".into()))
    }

    fn request(&self, method: &Method, extra: &HeaderMap, body: Bytes) -> Request {
        let state = self.state();
        let mut request = Request::new(method.clone(), state.url.clone());
        if !body.is_empty() {
            *request.body_mut() = Some(body.into());
        }
        let headers = request.headers_mut();
        headers.extend(self.fixed.clone());
        if let Some(session) = &state.session {
            headers.insert(headers::SESSION_ID, session.clone());
        }
        if let Some(version) = &state.version {
            headers.insert(headers::PROTOCOL_VERSION, version.clone());
        }
        // The headers of the message take precedence.
        headers.extend(extra.clone());
        request
    }

    /// Follows a redirect within the origin. Another origin never gets token, session or message.
    fn follow(&self, from: &Url, response: &Response) -> Result<(), TransportError> {
        let to = response.headers().get(LOCATION);
        let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
        let keeps_method = matches!(
            response.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let refused = || TransportError::Redirected(to.to_owned());
        let target = from.join(to).map_err(|_| refused())?;
        if to.is_empty() || !keeps_method || target.origin() != from.origin() {
            return Err(refused());
        }
        let mut url = from.clone();
        url.set_path(target.path());
        url.set_query(target.query());
        self.state().url = url;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The whole body of a response, up to `limit` bytes.
pub(super) async fn read_whole(
    mut response: Response,
    limit: usize,
) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= limit => body.extend_from_slice(&chunk),
            Ok(Some(chunk)) => {
                let error_chain = response.content_length();
                return Err(TransportError::TooLarge {
                    bytes: error_chain.unwrap_or((body.len() + chunk.len()) as u64),
                    is_whole: error_chain.is_some(),
                    limit: limit as u64,
                });
            }
            Ok(None) => return Ok(body),
            Err(error) => return Err(TransportError::Broken(error_chain(error))),
        }
    }
}

/// The value of `Retry-After`, if it is in seconds.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// The HTTP client for requests to `url` that are not MCP.
pub(crate) fn client_to(url: &Url) -> Result<Client, String> {
    client(url, &HttpClientOptions::new(url.as_str()))
}

/// The HTTP client for `url`: HTTP/1.1, without retries. Redirects are handled by
/// [`Endpoint::follow`].
fn client(url: &Url, options: &HttpClientOptions) -> Result<Client, String> {
    let client = Client::builder();
    #[cfg(feature = "tls")]
    let client = client.tls_backend_preconfigured(tls_config(url, options)?);
    #[cfg(not(feature = "tls"))]
    if url.scheme() == "https" {
        return Err("this program was built without TLS; build it with the feature `tls`".into());
    }
    let client = client
        .connect_timeout(options.connect_timeout)
        .tcp_keepalive(TCP_KEEPALIVE)
        .redirect(redirect::Policy::none())
        .retry(retry::never());
    // A proxy cannot reach a server on this machine.
    let client = if is_on_this_machine(url) {
        client.no_proxy()
    } else {
        client
    };
    client.build().map_err(error_chain)
}

fn is_on_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(feature = "tls")]
fn tls_config(url: &Url, options: &HttpClientOptions) -> Result<ClientConfig, String> {
    let roots = match url.scheme() {
        "https" => root_certificates(&options.trusted_certificates)?,
        _ => RootCertStore::empty(),
    };
    // The default provider of the process belongs to the program, not to a library.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The root certificates of the system and those in `pem`.
#[cfg(feature = "tls")]
fn root_certificates(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("a trusted certificate: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("a trusted certificate: {error}"))?;
    }
    Ok(roots)
}

/// An error with its causes, without the URL, which can contain a secret, and without the layers of
/// the HTTP client.
fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut causes = vec![error.to_string()];
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    essence(causes)
}

/// The causes of an error that say something to the user.
fn essence(causes: Vec<String>) -> String {
    let is_layer = |cause: &String| LAYERS.contains(&cause.as_str());
    let is_unknown_host = causes
        .iter()
        .any(|cause| DNS_LAYERS.contains(&cause.as_str()));
    let last = causes.last().cloned();
    let shown: Vec<_> = causes
        .into_iter()
        .filter(|cause| !is_layer(cause))
        .collect();
    let text = if shown.is_empty() {
        last.unwrap_or_default()
    } else {
        shown.join(": ")
    };
    if is_unknown_host {
        format!("{UNKNOWN_HOST}: {text}")
    } else {
        text
    }
}

/// How the cause begins if the name of the host has no address.
pub(crate) const UNKNOWN_HOST: &str = "the host name cannot be resolved";

/// The texts with which the HTTP client wraps a failed lookup of a host name.
const DNS_LAYERS: [&str; 2] = ["dns error", "error resolving DNS"];

/// The texts with which the HTTP client wraps a cause.
const LAYERS: [&str; 6] = [
    "error sending request",
    "client error (Connect)",
    "client error (SendRequest)",
    "tcp connect error",
    DNS_LAYERS[0],
    DNS_LAYERS[1],
];

/// The maximum of redirects in a row.
const MAX_REDIRECTS: usize = 4;

/// How many bytes of the body of a rejection are read.
const MAX_DETAIL_BYTES: usize = 4 << 10;

/// A header value that is marked as sensitive.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// How long the DELETE of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP keepalive of idle connections.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);
