//! One endpoint and what every request to it carries: session, version, token. Redirects within the origin are
//! followed, no others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming as Body;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use outlast_wire::envelope::Limits;
use outlast_wire::headers;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::{HttpClientOptions, Session};
use crate::transport::link::{LinkError, Parcel};

pub(super) struct Endpoint {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    fixed: HeaderMap,
    pub(super) accept: Duration,
    kept: Option<Session>,
    state: Mutex<State>,
}

struct State {
    uri: Uri,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Endpoint {
    pub(super) fn new(options: &HttpClientOptions) -> Result<Self, LinkError> {
        let wrong = |why: &dyn std::fmt::Display| {
            // A URL may have a secret in it.
            LinkError::Unreachable(format!("its URL is no endpoint: {why}"))
        };
        let uri: Uri = options.url.parse().map_err(|error| wrong(&error))?;
        if uri.authority().is_none() || !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong(&"it must begin with http:// or https://"));
        }
        let mut fixed = HeaderMap::new();
        for (name, value) in &options.headers {
            let name = HeaderName::try_from(name).map_err(|error| wrong(&error))?;
            let value = HeaderValue::try_from(value).map_err(|error| wrong(&error))?;
            fixed.insert(name, value);
        }
        if let Some(token) = &options.bearer {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| wrong(&"the token has characters no header has"))?;
            value.set_sensitive(true);
            fixed.insert(AUTHORIZATION, value);
        }
        let tls = match uri.scheme_str() {
            Some("https") => trusting(&options.trust).map_err(|error| wrong(&error))?,
            _ => RootCertStore::empty(),
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(options.connect));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_root_certificates(tls)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let known = options.session.as_ref().and_then(Session::id);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            fixed,
            accept: options.accept,
            kept: options.session.clone(),
            state: Mutex::new(State {
                uri,
                session: known.and_then(|id| secret(&id)),
                version: None,
            }),
        })
    }

    /// Sends one message. The headers of the answer are there when this resolves.
    pub(super) async fn post(&self, parcel: &Parcel) -> Result<Response<Body>, LinkError> {
        let mut extra = HeaderMap::new();
        extra.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // V1-HTTP-5.
        extra.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        for (name, value) in &parcel.headers {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                extra.insert(name, value);
            }
        }
        let body = Bytes::copy_from_slice(parcel.line.as_bytes());
        self.send(Method::POST, extra, body).await
    }

    /// Listens: in general, or for the rest of a stream after the event that was seen last (V1-RESUME-4).
    pub(super) async fn get(&self, seen: Option<&str>) -> Result<Response<Body>, LinkError> {
        let mut extra = HeaderMap::new();
        extra.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(Ok(seen)) = seen.map(HeaderValue::try_from) {
            extra.insert(headers::LAST_EVENT_ID, seen);
        }
        self.send(Method::GET, extra, Bytes::new()).await
    }

    /// Ends the session, if there is one (V1-SESS-6). Whatever the server says to that is fine.
    pub(super) async fn say_goodbye(&self) {
        if self.has_session() && !self.kept.as_ref().is_some_and(Session::is_kept) {
            let delete = self.send(Method::DELETE, HeaderMap::new(), Bytes::new());
            let _ = tokio::time::timeout(self.accept.min(GOODBYE), delete).await;
        }
    }

    /// Remembers the session that the server opened (V1-SESS-1).
    pub(super) fn opened_by(&self, answer: &Response<Body>) {
        let session = answer.headers().get(headers::SESSION_ID).cloned();
        let visible =
            session.filter(|id| id.as_bytes().iter().all(|byte| (0x21..0x7f).contains(byte)));
        let id = visible.as_ref().and_then(|id| id.to_str().ok());
        if let Some(kept) = &self.kept {
            kept.opened(id);
        }
        self.state().session = id.and_then(secret);
    }

    /// Remembers the version that was agreed: every request names it from now on (V1-HTTP-10).
    pub(super) fn agree(&self, version: &str) {
        self.state().version = HeaderValue::try_from(version).ok();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().version.is_some()
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// What a status that is not success means.
    pub(super) async fn refusal(&self, answer: Response<Body>) -> LinkError {
        let status = answer.status();
        let retry_after = retry_after(&answer);
        // V1-SESS-5.
        if status == StatusCode::NOT_FOUND && self.has_session() {
            return LinkError::SessionGone;
        }
        let read = tokio::time::timeout(self.accept, read_whole(answer, DETAIL));
        let detail = match read.await {
            Ok(Ok(body)) => String::from_utf8_lossy(&body).trim().to_owned(),
            _ => String::new(),
        };
        LinkError::Refused {
            status: status.as_u16(),
            detail,
            retry_after,
        }
    }

    async fn send(
        &self,
        method: Method,
        extra: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, LinkError> {
        for _ in 0..REDIRECTS {
            let request = self.request(&method, &extra, body.clone())?;
            let from = request.uri().clone();
            let answer =
                self.client
                    .request(request)
                    .await
                    .map_err(|error| match error.is_connect() {
                        true => LinkError::Unreachable(whole(&error)),
                        false => LinkError::Broken(whole(&error)),
                    })?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            self.follow(&from, &answer)?;
        }
        Err(LinkError::Redirected("itself, again and again".into()))
    }

    fn request(
        &self,
        method: &Method,
        extra: &HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, LinkError> {
        let state = self.state();
        let mut request = Request::builder()
            .method(method)
            .uri(state.uri.clone())
            .body(Full::new(body))
            .map_err(|error| LinkError::Unreachable(error.to_string()))?;
        let headers = request.headers_mut();
        headers.extend(self.fixed.clone());
        if let Some(session) = &state.session {
            headers.insert(headers::SESSION_ID, session.clone());
        }
        if let Some(version) = &state.version {
            headers.insert(headers::PROTOCOL_VERSION, version.clone());
        }
        // What a message brings itself counts more.
        headers.extend(extra.clone());
        Ok(request)
    }

    /// Goes to another place of the same origin. Another origin never sees token, session or message.
    fn follow(&self, from: &Uri, answer: &Response<Body>) -> Result<(), LinkError> {
        let to = answer.headers().get(LOCATION);
        let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
        let keeps_method = matches!(
            answer.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let refused = || LinkError::Redirected(to.to_owned());
        let place: Uri = to.parse().map_err(|_| refused())?;
        let same = place.authority().is_none()
            || place.scheme() == from.scheme() && place.authority() == from.authority();
        if !keeps_method || !same || !place.path().starts_with('/') {
            return Err(refused());
        }
        let path = place.path_and_query().cloned();
        let mut parts = from.clone().into_parts();
        parts.path_and_query = path.or_else(|| Some(PathAndQuery::from_static("/")));
        self.state().uri = Uri::from_parts(parts).map_err(|_| refused())?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every critical section only reads or writes members.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole body of an answer, up to `limit` bytes.
pub(super) async fn read_whole(answer: Response<Body>, limit: usize) -> Result<Bytes, LinkError> {
    let body = Limited::new(answer.into_body(), limit).collect().await;
    match body {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(LinkError::Broken(error.to_string())),
    }
}

/// How long a server wants to be left alone, if it says so in seconds.
pub(super) fn retry_after(answer: &Response<Body>) -> Option<Duration> {
    let said = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    said.trim().parse().ok().map(Duration::from_secs)
}

/// The most bytes of an answer that is one message.
pub(super) fn message_limit() -> usize {
    Limits::default().bytes
}

/// The roots of the system and those in `pem`.
fn trusting(pem: &[u8]) -> Result<RootCertStore, String> {
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

/// An error with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// How many redirects in a row are followed.
const REDIRECTS: usize = 4;

/// How many bytes are read of what a server says to a refusal.
const DETAIL: usize = 4 << 10;

/// A header that is not shown.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// After how long a silent connection is probed.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
