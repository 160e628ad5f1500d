//! The events that open pages receive, as server-sent events.
//!
//! An event goes to an [`Audience`]. A page that reads too slowly receives `resync` instead of what
//! it missed, and loads its data again. Events are hints: a page that misses one is old, never
//! wrong for longer than its next load.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::{Owner, Scope};
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::access::Viewer;
use crate::console::App;
use crate::workspaces;

/// Distributes events to the open pages.
#[derive(Clone, Debug)]
pub(crate) struct EventHub {
    sender: broadcast::Sender<Arc<PageEvent>>,
}

/// Who receives an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The owner, and operators.
    Owner(Owner),
    /// Operators alone.
    Operators,
    /// The viewers that share this workspace.
    Workspace(Arc<str>),
    /// Every open page.
    Everyone,
}

#[derive(Debug)]
struct PageEvent {
    audience: Audience,
    name: &'static str,
    /// JSON.
    data: String,
}

impl EventHub {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(EVENT_CAPACITY).0,
        }
    }

    /// Sends an event to every open page of `audience`.
    pub(crate) fn publish(&self, audience: Audience, name: &'static str, data: &impl Serialize) {
        if !self.has_readers() {
            return;
        }
        match serde_json::to_string(data) {
            Ok(data) => {
                let event = PageEvent {
                    audience,
                    name,
                    data,
                };
                let _ = self.sender.send(Arc::new(event));
            }
            Err(error) => tracing::error!(%error, name, "cannot encode an event of the console"),
        }
    }

    /// Tells every open page to load its data again.
    pub(crate) fn resync(&self) {
        let event = PageEvent {
            audience: Audience::Everyone,
            name: "resync",
            data: "{}".to_owned(),
        };
        let _ = self.sender.send(Arc::new(event));
    }

    /// Whether a page is open.
    pub(crate) fn has_readers(&self) -> bool {
        self.sender.receiver_count() > 0
    }
}

impl Audience {
    fn includes(&self, scope: &Scope, workspace: &str) -> bool {
        match (self, scope) {
            (Self::Workspace(wanted), _) => **wanted == *workspace,
            (_, Scope::AnyTask) | (Self::Everyone, _) => true,
            (Self::Owner(owner), Scope::OwnedBy(own)) => owner == own,
            (Self::Operators, Scope::OwnedBy(_)) => false,
        }
    }
}

/// `GET /api/v1/events`. The first event is `hello`.
pub(crate) async fn stream(State(app): State<App>, viewer: Viewer) -> Response {
    let receiver = app.events().sender.subscribe();
    app.feed().start(&app);
    let scope = viewer.scope();
    let workspace = workspaces::key(&viewer);
    let hello = sse::Event::default()
        .event("hello")
        .data("{}")
        .retry(RETRY_DELAY);
    let reading = Reading {
        receiver,
        scope,
        workspace,
        hello: Some(hello),
        app,
        viewer,
    };
    let events = stream::unfold(reading, |mut reading| async move {
        let event = reading.next().await?;
        Some((Ok::<_, Infallible>(event), reading))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    // Asks proxies not to buffer events.
    let headers = response.headers_mut();
    headers.insert(
        "x-accel-buffering",
        axum::http::HeaderValue::from_static("no"),
    );
    response
}

/// One open stream.
struct Reading {
    receiver: broadcast::Receiver<Arc<PageEvent>>,
    scope: Scope,
    workspace: String,
    hello: Option<sse::Event>,
    app: App,
    viewer: Viewer,
}

impl Reading {
    /// The next event; `None` when the session of the viewer has ended.
    async fn next(&mut self) -> Option<sse::Event> {
        if let Some(hello) = self.hello.take() {
            return Some(hello);
        }
        loop {
            let received = tokio::time::timeout(SESSION_CHECK_INTERVAL, self.receiver.recv()).await;
            let Ok(received) = received else {
                if !self.app.access().is_current(&self.viewer).await {
                    return None;
                }
                continue;
            };
            match received {
                Ok(event) if event.audience.includes(&self.scope, &self.workspace) => {
                    return Some(sse::Event::default().event(event.name).data(&event.data));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    let data = format!("{{\"missed\":{missed}}}");
                    return Some(sse::Event::default().event("resync").data(data));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// How many events a slow page may lag behind.
const EVENT_CAPACITY: usize = 1_024;

/// How soon a browser connects again after the stream broke.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Silent connections are closed by proxies, and a browser cannot see that a server is gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How often a quiet stream checks that its viewer is still signed in.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(15);
