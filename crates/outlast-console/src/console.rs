//! The console as a service, its builder, and what its handlers share.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{future::RouteFuture, get};
use axum::{BoxError, Router, middleware};
use outlast::gateway::UpstreamEndpoints;
use outlast::server::Scopes;
use outlast::transport::http::{Authenticate, BearerTokens, Token};
use outlast_engine::{Engine, random};

use crate::access::{self, Access};
use crate::answered::Answered;
use crate::deletions::Deletions;
use crate::events::EventHub;
use crate::pages;
use crate::task_feed::TaskFeed;
use crate::workspace::ConnectionSpec;
use crate::workspaces::{FirstConnections, Workspaces};
use crate::{api, assets};

/// A web console for the tasks of an engine.
#[derive(Clone)]
pub struct Console(App);

/// The console as a tower service, for `HttpOptions::fallback` and for routers.
#[derive(Clone)]
pub struct ConsoleService(Router);

/// Configures a [`Console`].
#[must_use = "a builder does nothing until `build`"]
pub struct ConsoleBuilder {
    engine: Engine,
    upstreams: Option<Arc<UpstreamEndpoints>>,
    authenticate: Option<Arc<dyn Authenticate>>,
    sign_in_secret: Option<String>,
    base: String,
    title: String,
    instance: Option<String>,
    token_hint: String,
    first: FirstConnections,
}

/// What the handlers share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    engine: Engine,
    upstreams: Option<Arc<UpstreamEndpoints>>,
    access: Access,
    events: EventHub,
    feed: TaskFeed,
    deletions: Deletions,
    workspaces: Workspaces,
    answered: Answered,
    base: String,
    title: String,
    token_hint: String,
}

impl Console {
    /// Returns a builder for a console of `engine`.
    pub fn builder(engine: Engine) -> ConsoleBuilder {
        ConsoleBuilder {
            engine,
            upstreams: None,
            authenticate: None,
            sign_in_secret: None,
            base: String::new(),
            title: "Outlast".to_owned(),
            instance: None,
            token_hint: "The program that serves this page prints a link when it starts."
                .to_owned(),
            first: FirstConnections::default(),
        }
    }

    /// A path that signs in the browser that opens it first, without typing a token. It is valid
    /// once. With [`ConsoleBuilder::authenticate`] it needs [`ConsoleBuilder::sign_in_secret`];
    /// else the path leads to the page that asks for a token.
    pub fn sign_in_path(&self) -> String {
        let base = self.0.base();
        match self.0.access().one_time_code() {
            Some(code) => format!("{base}/?token={code}"),
            None => format!("{base}/"),
        }
    }

    /// A name for the browser that sends a request with these headers, if it is signed in. Requests
    /// of one browser belong to one process, which has its connections to servers:
    /// [`Fallback::with_home`](outlast::transport::http::Fallback::with_home).
    pub fn browser(
        &self,
        headers: &HeaderMap,
    ) -> impl Future<Output = Option<String>> + Send + use<> {
        let (app, headers) = (self.0.clone(), headers.clone());
        async move { app.access().browser(&headers).await }
    }

    /// Ends the connections of all viewers to servers, and the processes that they started.
    pub async fn close(&self) {
        for workspace in self.0.workspaces().all() {
            workspace.close().await;
        }
    }

    /// The service.
    pub fn into_service(self) -> ConsoleService {
        let app = self.0;
        let router = Router::new()
            .merge(pages::router())
            .merge(api::router())
            .route("/sign-in", get(access::sign_in_page).post(access::sign_in))
            .route("/sign-out", axum::routing::post(access::sign_out))
            .fallback(pages::not_found)
            // Every route above needs a viewer, except those that the access layer lists.
            .layer(middleware::from_fn_with_state(app.clone(), access::guard))
            .route("/assets/{version}/{name}", get(assets::asset))
            .layer(middleware::from_fn(access::response_headers))
            .with_state(app);
        ConsoleService(router)
    }
}

impl<B> tower_service::Service<Request<B>> for ConsoleService
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        tower_service::Service::call(&mut self.0, request.map(Body::new))
    }
}

impl ConsoleBuilder {
    /// Admits the callers that `authenticate` identifies by a bearer token. An identity with the
    /// scope [`Scopes::OPERATE`] sees the tasks of every owner, any other its own. Without this,
    /// the console has a token of its own, and [`Console::sign_in_path`] contains a code for it.
    pub fn authenticate(mut self, authenticate: Arc<dyn Authenticate>) -> Self {
        self.authenticate = Some(authenticate);
        self
    }

    /// The token behind [`Console::sign_in_path`].
    pub fn sign_in_secret(mut self, token: impl Into<String>) -> Self {
        self.sign_in_secret = Some(token.into());
        self
    }

    /// Shows the servers of a gateway.
    pub fn upstreams(mut self, upstreams: Arc<UpstreamEndpoints>) -> Self {
        self.upstreams = Some(upstreams);
        self
    }

    /// The path under which the service is mounted, such as `/console`. By default it is the root.
    pub fn base_path(mut self, path: &str) -> Self {
        path.trim_end_matches('/').clone_into(&mut self.base);
        self
    }

    /// The name of the program, for the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// A text that is the same after a restart and different for another console on the same host,
    /// such as the path of the store. The name of the cookie follows from it. Without it, the
    /// sessions of browsers end with the process.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Says on the sign-in page how to get a token. Words in backquotes are commands.
    pub fn token_hint(mut self, hint: impl Into<String>) -> Self {
        self.token_hint = hint.into();
        self
    }

    /// Connects every viewer to this server.
    pub fn connection(mut self, spec: ConnectionSpec) -> Self {
        self.first.specs.push(spec);
        self
    }

    /// Connects every viewer to the endpoints of this program, with the viewer's own token: calls
    /// and tasks belong to the viewer. `endpoints` returns names and URLs; it is called when the
    /// program listens.
    pub fn own_endpoints(
        mut self,
        endpoints: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.first.endpoints = Some(Arc::new(endpoints));
        self
    }

    /// Builds the console.
    pub fn build(self) -> Console {
        let (authenticate, secret) = match self.authenticate {
            Some(authenticate) => (authenticate, self.sign_in_secret),
            None => {
                let secret = self
                    .sign_in_secret
                    .unwrap_or_else(|| format!("console_{}", random::token::<32>()));
                let token = Token::new("operator", &secret).with_scopes(Scopes::ALL);
                (BearerTokens::shared([token]), Some(secret))
            }
        };
        let instance = self.instance.unwrap_or_else(random::token::<16>);
        let access = Access::new(
            self.engine.clone(),
            authenticate,
            secret,
            &instance,
            &self.base,
        );
        let events = EventHub::new();
        Console(App(Arc::new(Shared {
            feed: TaskFeed::default(),
            deletions: Deletions::default(),
            workspaces: Workspaces::new(self.first),
            answered: Answered::default(),
            engine: self.engine,
            upstreams: self.upstreams,
            access,
            events,
            base: self.base,
            title: self.title,
            token_hint: self.token_hint,
        })))
    }
}

impl App {
    /// The engine whose tasks are shown.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The servers of the gateway, if there is one.
    pub(crate) fn upstreams(&self) -> Option<&Arc<UpstreamEndpoints>> {
        self.0.upstreams.as_ref()
    }

    /// Who may see and change what.
    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    /// The events of open pages.
    pub(crate) fn events(&self) -> &EventHub {
        &self.0.events
    }

    /// The workspaces of the viewers.
    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.0.workspaces
    }

    /// Whether the console shows servers of others only, as in `outlast inspect`.
    pub(crate) fn is_inspector(&self) -> bool {
        self.upstreams().is_none() && self.workspaces().has_first_server()
    }

    /// Who answered input requests of stored tasks.
    pub(crate) fn answered(&self) -> &Answered {
        &self.0.answered
    }

    pub(crate) fn feed(&self) -> &TaskFeed {
        &self.0.feed
    }

    /// The deletions that can be undone.
    pub(crate) fn deletions(&self) -> &Deletions {
        &self.0.deletions
    }

    /// The path under which the console is mounted.
    pub(crate) fn base(&self) -> &str {
        &self.0.base
    }

    pub(crate) fn title(&self) -> &str {
        &self.0.title
    }

    pub(crate) fn token_hint(&self) -> &str {
        &self.0.token_hint
    }
}
