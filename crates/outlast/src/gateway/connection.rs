//! One connection to an upstream.
//!
//! Its calls are in [`ActiveCalls`], the clients that use it in [`Listeners`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::engine::CallContext;
use outlast_engine::{InputKinds, Origin, Owner};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes, log, object};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::active_calls::{ActiveCalls, ResumedCall, UnderWay};
use super::asks::Asks;
use super::catalogue::{Catalogue, Traits};
use super::listeners::Listeners;
use super::pool::Apart;
use crate::client::{
    self, ClientOptions, ConversationWatch, Era, ReceiverOptions, ReconnectPolicy,
    ServerDescription, Target,
};
use crate::fronts::Fronts;
use crate::server::{ClientHandle, SessionId};
use crate::transport::http_client::{SavedSession, Session};
use crate::transport::link::LinkError;

/// One connection. Dropping the last handle closes it.
pub(super) struct Connection {
    pub(super) back: client::Client,
    /// What the server declared in the last handshake.
    server: Mutex<Arc<ServerDescription>>,
    pub(super) catalogue: Catalogue,
    pub(super) shared: Arc<Shared>,
    /// The session at a URL.
    session: Option<Session>,
    /// Counts the connection if it is not shared.
    apart: Option<Apart>,
}

/// How to connect to an upstream.
pub(super) struct Way {
    pub(super) name: Arc<str>,
    pub(super) target: Target,
    pub(super) era: Era,
    pub(super) handshake: Duration,
    pub(super) fronts: Arc<Fronts>,
}

/// What a connection shares with the handlers of the upstream's messages.
pub(super) struct Shared {
    pub(super) owner: Owner,
    pub(super) accepts: InputKinds,
    pub(super) fronts: Arc<Fronts>,
    pub(super) calls: ActiveCalls,
    pub(super) listeners: Listeners,
    last_used: Mutex<Instant>,
}

/// What a connection resumes.
#[derive(Default)]
pub(super) struct Resumption {
    pub(super) calls: Vec<ResumedCall>,
    /// Their session, if the upstream has sessions.
    pub(super) session: Option<SavedSession>,
}

impl Connection {
    /// Connects to an upstream for `client`, or resumes what a previous run of this process left.
    pub(super) async fn open(
        way: &Way,
        client: &Arc<ClientHandle>,
        resumed: Resumption,
        apart: Option<Apart>,
    ) -> Result<Arc<Self>, ErrorObject> {
        let shared = Arc::new(Shared {
            owner: client.owner().clone(),
            accepts: client.accepts(),
            fronts: way.fronts.clone(),
            calls: ActiveCalls::default(),
            listeners: Listeners::new(client),
            last_used: Mutex::new(Instant::now()),
        });
        for call in &resumed.calls {
            // The upstream may send input requests at once.
            shared.calls.resume(call);
        }
        let session = resumed.session.map_or_else(Session::new, Session::again);
        let (target, session) = match way.target.in_session(session.clone()) {
            Some(target) => (target, Some(session)),
            None => (way.target.clone(), None),
        };
        let options = ClientOptions {
            server_name: Some(way.name.clone()),
            // BR-NEG-2: the target caches the detected era.
            era: way.era,
            handler: Arc::new(Asks(Arc::downgrade(&shared), shared.accepts)),
            // BR-CH-1.
            receiver_tasks: (shared.accepts != InputKinds::NONE).then(ReceiverOptions::default),
            reconnect: Some(ReconnectPolicy::default()),
            on_notification: Some(shared.clone().notices()),
            handshake_timeout: way.handshake,
            ..ClientOptions::default()
        };
        let unreachable = |fault: client::Error| {
            let (upstream, next) = (&*way.name, advice(&fault));
            tracing::warn!(upstream, fault = fault.brief(), "cannot connect to the upstream");
            codes::internal(format!("{upstream} cannot be reached: {fault}{next}"))
        };
        let back = client::Client::connect(target, options)
            .await
            .map_err(unreachable)?;
        let server = back.server().await.map_err(unreachable)?;
        let owner = &shared.owner;
        tracing::info!(upstream = &*way.name, owner = owner.to_string(), era = ?server.era(), "connected");
        let ups = back.conversations();
        let connection = Arc::new(Self {
            back,
            server: Mutex::new(Arc::new(server)),
            catalogue: Catalogue::default(),
            shared,
            session,
            apart,
        });
        if let Some(apart) = &connection.apart {
            apart.is_of(&connection);
        }
        tokio::spawn(remind(Arc::downgrade(&connection), ups));
        Ok(connection)
    }

    /// The traits of a tool; `None` if the server has no such tool (V1-CREATE-10). If its tools
    /// cannot be listed, the traits are the default, and the server itself rejects unknown tools.
    pub(super) async fn traits(&self, tool: &str) -> Option<Traits> {
        let Ok(list) = self.back.tools().await else {
            return Some(Traits::default());
        };
        if let Some(known) = self.catalogue.traits(&list, tool) {
            return Some(known);
        }
        // The cached list may be old: a server need not announce a change.
        match self.back.fresh_tools().await {
            Ok(list) => self.catalogue.traits(&list, tool),
            Err(_) => Some(Traits::default()),
        }
    }

    /// What the server declared in the last handshake.
    pub(super) fn server(&self) -> Arc<ServerDescription> {
        let server = self.server.lock();
        server.clone()
    }

    /// Records the description of a restarted server, which may differ.
    fn met_again(&self, server: ServerDescription) {
        let mut met = self.server.lock();
        *met = Arc::new(server);
    }

    /// Sends subscriptions and log level again after a restart of the server.
    async fn say_again(&self) {
        if self.server().is_modern() {
            // A modern server gets them with every request.
            return;
        }
        let listeners = &self.shared.listeners;
        let level = listeners.level();
        let mut said = Ok(());
        for uri in listeners.resources() {
            said = said.and(self.back.subscribe(&uri).await);
        }
        if let Some(level) = level.and_then(|level| Raw::encode(&json!({ "level": level })).ok()) {
            let set = self.back.request(log::SET_LEVEL, Some(&level)).await;
            said = said.and(set.map(drop));
        }
        if let Err(fault) = said {
            tracing::info!(
                fault = fault.brief(),
                "could not restore all subscriptions after the upstream restarted"
            );
        }
    }

    /// Registers a call until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, cx: &CallContext) -> UnderWay {
        UnderWay::begin(self.clone(), cx)
    }

    /// Registers a call whose task does not exist yet.
    pub(super) fn reserve(self: &Arc<Self>) -> UnderWay {
        UnderWay::reserve(self.clone())
    }

    /// The state that resumes its session. From now on the session outlives the connection.
    pub(super) fn keep_session(&self) -> Option<SavedSession> {
        let session = self.session.as_ref()?;
        session.keep();
        session.saved()
    }

    /// Whether another connection can resume its tasks. Tasks of a child process end with it.
    pub(super) fn outlives_us(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the connection is closed for good.
    pub(super) fn is_over(&self) -> bool {
        self.back.is_closed()
    }

    /// Whether it has an active call or a listener.
    pub(super) fn is_needed(&self) -> bool {
        let shared = &self.shared;
        !self.is_over() && (!shared.calls.is_empty() || shared.listeners.is_any_listening())
    }

    /// Waits until no call is active, for a limited time.
    pub(super) async fn quiet(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.shared.calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The time since it was last used.
    pub(super) fn idle(&self) -> Duration {
        self.shared.last_used.lock().elapsed()
    }

    /// Records that `client` uses it. The client receives messages that belong to no call.
    pub(super) fn used_by(&self, client: &Arc<ClientHandle>) {
        self.shared.mark_used();
        self.shared.listeners.add(client);
    }

    /// Subscribes a session to a resource. The upstream gets only the first subscription.
    pub(super) async fn listen(&self, session: &SessionId, uri: &str) -> Result<(), client::Error> {
        let listeners = &self.shared.listeners;
        if !listeners.subscribe(session, uri) {
            return Ok(());
        }
        let subscribed = self.back.subscribe(uri).await;
        if subscribed.is_err() {
            listeners.unsubscribe(session, uri);
        }
        subscribed
    }

    /// Unsubscribes a session from a resource. The upstream gets only the last unsubscription.
    pub(super) async fn unlisten(
        &self,
        session: &SessionId,
        uri: &str,
    ) -> Result<(), client::Error> {
        if self.shared.listeners.unsubscribe(session, uri) {
            self.back.unsubscribe(uri).await
        } else {
            Ok(())
        }
    }

    /// Records the minimum level of log messages.
    pub(super) fn remember_level(&self, call: &Origin) {
        let params = call.params.as_ref();
        let level = params.and_then(|params| object::find(params.borrow(), &["level"]));
        self.shared.listeners.set_level(level.map(RawRef::to_raw));
    }

    /// The minimum level of log messages, if it is sent with every request.
    pub(super) fn level(&self, client: &ClientHandle) -> Option<Raw> {
        if !client.has_session() || !self.server().is_modern() {
            return None;
        }
        self.shared.listeners.level()
    }
}

impl Shared {
    /// Records that the connection is used now.
    pub(super) fn mark_used(&self) {
        *self.last_used.lock() = Instant::now();
    }
}

/// Restores the preferences of the sessions after each restart of the server, while the connection
/// exists.
async fn remind(connection: Weak<Connection>, ups: ConversationWatch) {
    let Ok(first) = ups.conversation().await else {
        return;
    };
    let mut last = Arc::downgrade(&first);
    drop(first);
    while let Ok(up) = ups.after(&last).await {
        last = Arc::downgrade(&up);
        let Some(connection) = connection.upgrade() else {
            return;
        };
        connection.met_again(up.server.clone());
        drop(up);
        connection.say_again().await;
    }
}

/// The next step for an error of a connection.
fn advice(fault: &client::Error) -> &'static str {
    match fault {
        client::Error::Transport(LinkError::Refused {
            status: 401 | 403, ..
        }) => {
            "; set its credentials in a header (`headers` of the server in the configuration file, or --header): \
             the gateway does not support OAuth, and it never forwards the credentials of its clients"
        }
        client::Error::Transport(LinkError::Refused {
            status: 404 | 405, ..
        }) => {
            "; if it uses the old HTTP+SSE transport, use its URL for Streamable HTTP or its command instead"
        }
        client::Error::Transport(LinkError::Unreachable(_)) => {
            "; check its URL, or that its command is installed and its path is correct"
        }
        client::Error::Transport(LinkError::Ended { .. }) => {
            "; run its command by hand to see what it needs"
        }
        client::Error::TimedOut(_) => "; if it needs longer to start, raise the setting `startMs`",
        _ => "",
    }
}

/// How often to check whether calls are active before a connection is closed.
const LOOK: Duration = Duration::from_millis(10);
