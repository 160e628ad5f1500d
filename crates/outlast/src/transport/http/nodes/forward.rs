//! Sends a request to another node and returns its response as a stream.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use outlast_engine::store::StoreError;

use super::super::guard::SESSION_ID;
use super::super::response::Payload;
use super::pass::{PASS, Pass, request_name};
use super::{Nodes, RemoteNode};
use crate::server::HttpParts;

/// A request as it was received.
pub(in crate::transport::http) struct ForwardedRequest<'r> {
    pub(in crate::transport::http) head: &'r HttpParts,
    pub(in crate::transport::http) body: Bytes,
    pub(in crate::transport::http) pass: Pass,
}

/// Why another node did not answer.
#[derive(Debug)]
pub(in crate::transport::http) enum ForwardError {
    /// It is not the home: the record has changed.
    Misdirected,
    /// No process listens at its address: it has ended, and nothing was done.
    Refused,
    /// It could not be reached, so nothing was done.
    NotReached,
    /// The connection ended, or the node lost its lease, before a response. It may have handled the
    /// request.
    NoResponse,
    /// The keys could not be read.
    Store(StoreError),
}

pub(super) struct ForwardClient(Client<HttpConnector, Payload>);

impl ForwardClient {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Self(client)
    }
}

impl Nodes {
    /// Forwards a request to `node`.
    pub(in crate::transport::http) async fn forward(
        &self,
        node: &RemoteNode,
        request: &ForwardedRequest<'_>,
    ) -> Result<Response<Incoming>, ForwardError> {
        let sent = self.request(node, request).await?;
        let response = self.client.0.request(sent);
        let mut response = std::pin::pin!(response);
        loop {
            match tokio::time::timeout(LEASE_CHECK_INTERVAL, response.as_mut()).await {
                Ok(Ok(response)) if response.status() == StatusCode::MISDIRECTED_REQUEST => {
                    return Err(ForwardError::Misdirected);
                }
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) if error.is_connect() => {
                    if !is_refused(&error) {
                        return Err(ForwardError::NotReached);
                    }
                    self.directory.mark_refused(node.node);
                    return Err(ForwardError::Refused);
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "another node closed the connection before its response");
                    return Err(ForwardError::NoResponse);
                }
                // A paused node accepts connections and never answers.
                Err(_) => match self.remote(node.node).await {
                    Ok(Some(_)) => {}
                    Ok(None) => return Err(ForwardError::NoResponse),
                    Err(error) => return Err(ForwardError::Store(error)),
                },
            }
        }
    }

    async fn request(
        &self,
        node: &RemoteNode,
        request: &ForwardedRequest<'_>,
    ) -> Result<Request<Payload>, ForwardError> {
        let head = request.head;
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let name = request_name(&head.method, path, session_of(&head.headers));
        let pass = self.seal_pass(&request.pass, name).await;
        let pass = HeaderValue::from_str(&pass.map_err(ForwardError::Store)?)
            .expect("Base64 is a valid header value");
        let uri: Uri = format!("http://{}{path}", node.address)
            .parse()
            .map_err(|_| ForwardError::NotReached)?;
        let mut sent = Request::new(Payload::bytes(request.body.clone()));
        *sent.method_mut() = head.method.clone();
        *sent.uri_mut() = uri;
        *sent.headers_mut() = end_to_end(&head.headers);
        if head.method != Method::GET {
            sent.headers_mut()
                .insert(CONTENT_LENGTH, request.body.len().into());
        }
        sent.headers_mut().insert(PASS, pass);
        Ok(sent)
    }
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return io.kind() == io::ErrorKind::ConnectionRefused;
        }
        cause = error.source();
    }
    false
}

/// The session id of a request, to which its pass is bound.
pub(super) fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

/// The headers without those that concern one connection.
pub(in crate::transport::http) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        kept.remove(name);
    }
    kept
}

/// RFC 9110, section 7.6.1; the length is set again.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    HeaderName::from_static("expect"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("te"),
    HeaderName::from_static("trailer"),
    HeaderName::from_static("transfer-encoding"),
    HeaderName::from_static("upgrade"),
];

/// How long a connection to another node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an unused connection to another node stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How often the lease of a node is checked that has not answered.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
