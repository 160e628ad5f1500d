//! The HTTP endpoint by which another program reports detached work.
//!
//! A POST applies one [`Report`], a GET returns the state. The handle in `Authorization: Bearer` is
//! the only right that is needed. A wrong handle and an expired task get the same response.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, StatusCode};
use outlast_engine::Engine;
use serde_json::json;
use tokio::time::timeout;
use tower_service::Service;

use super::bodies::UnfinishedBodies;
use super::fallback::Fallback;
use super::rejection::Rejection;
use super::response::{HttpResponse, text};
use crate::detached::{Completion, CompletionError, CompletionHandle, Report};

/// Receives reports about detached tasks. It ignores the path.
/// [`RunningServer::callback_service`](crate::RunningServer::callback_service) makes one.
#[derive(Clone)]
pub struct CallbackService {
    engine: Engine,
    bodies: Arc<UnfinishedBodies>,
}

/// Serves the callbacks at one path, and another service at all other paths.
#[derive(Clone)]
pub(crate) struct CallbackRoute {
    pub(crate) path: Arc<str>,
    pub(crate) service: CallbackService,
    pub(crate) next: Option<Fallback>,
}

/// A response that is not a success.
enum CallbackRefusal {
    /// The task or the report is wrong.
    Report(CompletionError),
    /// The body is wrong.
    Body(Rejection),
    /// The HTTP method is wrong.
    Method,
}

impl CallbackService {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            bodies: Arc::new(UnfinishedBodies::new(MAX_UNFINISHED_BYTES)),
        }
    }

    async fn answer<B>(&self, request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send,
    {
        match self.handle(request).await {
            Ok(line) => text(StatusCode::OK, line),
            Err(refusal) => refusal.answer(),
        }
    }

    async fn handle<B>(&self, request: Request<B>) -> Result<String, CallbackRefusal>
    where
        B: Body<Data = Bytes> + Send,
    {
        let handle = handle_of(request.headers())?;
        let task = Completion::open(&self.engine, &handle).await?;
        match *request.method() {
            Method::GET => {}
            Method::POST => self.report(request.into_body()).await?.apply(&task).await?,
            _ => return Err(CallbackRefusal::Method),
        }
        let state = task.state().await?;
        serde_json::to_string(&state).map_err(invalid)
    }

    async fn report<B>(&self, body: B) -> Result<Report, CallbackRefusal>
    where
        B: Body<Data = Bytes> + Send,
    {
        let limit = self.engine.policy().sizes.payload_bytes + REPORT_OVERHEAD_BYTES;
        let body = pin!(body);
        let bytes = timeout(BODY_TIMEOUT, self.bodies.collect(body, limit)).await;
        let bytes = bytes.unwrap_or(Err(Rejection::Broken));
        serde_json::from_slice(&bytes.map_err(CallbackRefusal::Body)?).map_err(invalid)
    }
}

impl CallbackRefusal {
    fn answer(self) -> HttpResponse {
        let (status, header, error) = match self {
            Self::Body(rejection) => return rejection.answer(),
            Self::Method => {
                let why = "send a report with POST, or read the state with GET".to_owned();
                let allowed = Some((ALLOW, METHODS));
                (StatusCode::METHOD_NOT_ALLOWED, allowed, why)
            }
            Self::Report(error) => {
                let (status, header) = match &error {
                    CompletionError::UnknownHandle => {
                        (StatusCode::UNAUTHORIZED, Some((WWW_AUTHENTICATE, BEARER)))
                    }
                    CompletionError::Ended(_) => (StatusCode::CONFLICT, None),
                    CompletionError::Invalid(_) => (StatusCode::BAD_REQUEST, None),
                    CompletionError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
                };
                (status, header, error.to_string())
            }
        };
        let mut response = text(status, json!({ "error": error }).to_string());
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

fn invalid(error: serde_json::Error) -> CallbackRefusal {
    CompletionError::Invalid(format!("the body is not a report: {error}")).into()
}

fn handle_of(headers: &HeaderMap) -> Result<CompletionHandle, CallbackRefusal> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let handle = match (given.next(), given.next()) {
        (Some(one), None) => one.to_str().ok().and_then(bearer),
        _ => None,
    };
    let handle = handle.and_then(|text| text.trim().parse().ok());
    handle.ok_or_else(|| CompletionError::UnknownHandle.into())
}

/// The token of an `Authorization` header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

impl From<CompletionError> for CallbackRefusal {
    fn from(error: CompletionError) -> Self {
        Self::Report(error)
    }
}

impl<B> Service<Request<B>> for CallbackService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl Service<Request<Incoming>> for CallbackRoute {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> ResponseFuture {
        let route = self.clone();
        Box::pin(async move {
            Ok(match &route.next {
                _ if request.uri().path() == &*route.path => route.service.answer(request).await,
                Some(next) => next.answer(request).await,
                None => text(
                    StatusCode::NOT_FOUND,
                    json!({ "error": "not found" }).to_string(),
                ),
            })
        })
    }
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

/// What a report has besides its payload.
const REPORT_OVERHEAD_BYTES: usize = 4 << 10;

/// The size of all unfinished reports together; the first 64 KiB of each do not count.
const MAX_UNFINISHED_BYTES: usize = 64 << 20;

const BODY_TIMEOUT: Duration = Duration::from_secs(30);

const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
