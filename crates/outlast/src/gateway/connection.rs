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

use super::active_calls::{ActiveCall, ActiveCalls, ResumedCall};
use super::catalogue::{Catalogue, ToolTraits};
use super::input_requests::InputRequestForwarder;
use super::listeners::Listeners;
use super::pool::DedicatedSlot;
use crate::broadcaster::Broadcaster;
use crate::client::{
    self, ClientOptions, ConversationWatch, Era, ReceiverOptions, ReconnectPolicy,
    ServerDescription, Target,
};
use crate::log_limit::LogLimit;
use crate::server::{ClientHandle, SessionId};
use crate::transport::http_client::{HttpSession, SavedSession, UNKNOWN_HOST};
use crate::transport::link::TransportError;

static NOT_CONNECTED: LogLimit = LogLimit::new();

/// One connection. Dropping the last handle closes it.
pub(super) struct UpstreamConnection {
    pub(super) upstream: client::Client,
    /// What the server declared in the last handshake.
    server: Mutex<Arc<ServerDescription>>,
    pub(super) catalogue: Catalogue,
    pub(super) shared: Arc<Shared>,
    /// The session at a URL.
    session: Option<HttpSession>,
    /// Counts the connection if it is not shared.
    dedicated: Option<DedicatedSlot>,
}

/// How to connect to an upstream.
pub(super) struct ConnectSpec {
    pub(super) name: Arc<str>,
    pub(super) target: Target,
    pub(super) era: Era,
    pub(super) handshake: Duration,
    pub(super) broadcaster: Arc<Broadcaster>,
}

/// What a connection shares with the handlers of the upstream's messages.
pub(super) struct Shared {
    pub(super) owner: Owner,
    pub(super) accepts: InputKinds,
    pub(super) broadcaster: Arc<Broadcaster>,
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

/// An upstream that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{next}", if next.is_empty() { "" } else { "; " })]
#[non_exhaustive]
pub struct UnreachableError {
    /// The upstream and the cause. It may quote the upstream.
    pub what: String,
    /// What to do next; empty if unknown.
    pub next: &'static str,
}

impl UnreachableError {
    pub(super) fn new(upstream: &str, fault: &client::Error) -> Self {
        Self {
            what: format!("{upstream} cannot be reached: {}", cause(fault)),
            next: advice(fault),
        }
    }
}

/// Why a server cannot be reached. The text of the error itself would say twice that it cannot.
pub(super) fn cause(fault: &client::Error) -> String {
    match fault {
        client::Error::Transport(TransportError::Unreachable(cause)) => cause.clone(),
        fault => fault.to_string(),
    }
}

impl UpstreamConnection {
    /// Connects to an upstream for `client`, or resumes what a previous run of this process left. A
    /// failure is logged.
    pub(super) async fn open(
        spec: &ConnectSpec,
        client: &Arc<ClientHandle>,
        resumed: Resumption,
        dedicated: Option<DedicatedSlot>,
    ) -> Result<Arc<Self>, ErrorObject> {
        let connected = Self::connect(spec, client, resumed, dedicated).await;
        connected.map_err(|fault| {
            NOT_CONNECTED.log(|left_out| {
                tracing::warn!(
                    upstream = &*spec.name,
                    fault = fault.brief(),
                    left_out,
                    "cannot connect to the upstream"
                );
            });
            codes::internal(UnreachableError::new(&spec.name, &fault).to_string())
        })
    }

    /// Like [`open`](Self::open), without a log line for a failure.
    pub(super) async fn connect(
        spec: &ConnectSpec,
        client: &Arc<ClientHandle>,
        resumed: Resumption,
        dedicated: Option<DedicatedSlot>,
    ) -> Result<Arc<Self>, client::Error> {
        let shared = Arc::new(Shared {
            owner: client.owner().clone(),
            accepts: client.accepts(),
            broadcaster: spec.broadcaster.clone(),
            calls: ActiveCalls::default(),
            listeners: Listeners::new(client),
            last_used: Mutex::new(Instant::now()),
        });
        for call in &resumed.calls {
            // The upstream may send input requests at once.
            shared.calls.resume(call);
        }
        let session = resumed
            .session
            .map_or_else(HttpSession::new, HttpSession::from_saved);
        let (target, session) = match spec.target.in_session(session.clone()) {
            Some(target) => (target, Some(session)),
            None => (spec.target.clone(), None),
        };
        let options = ClientOptions {
            server_name: Some(spec.name.clone()),
            // BR-NEG-2: the target caches the detected era.
            era: spec.era,
            handler: Arc::new(InputRequestForwarder(
                Arc::downgrade(&shared),
                shared.accepts,
            )),
            // BR-CH-1.
            receiver_tasks: (shared.accepts != InputKinds::NONE).then(ReceiverOptions::default),
            reconnect: Some(ReconnectPolicy::default()),
            on_notification: Some(shared.clone().notification_handler()),
            handshake_timeout: spec.handshake,
            ..ClientOptions::default()
        };
        let upstream = client::Client::connect(target, options).await?;
        let server = upstream.server().await?;
        let owner = &shared.owner;
        if dedicated.is_none() {
            tracing::info!(upstream = &*spec.name, owner = owner.to_string(), era = ?server.era(), "connected");
        } else {
            // One line per call is too much for the default level.
            tracing::debug!(upstream = &*spec.name, owner = owner.to_string(), era = ?server.era(), "connected for one call");
        }
        let conversations = upstream.conversations();
        let connection = Arc::new(Self {
            upstream,
            server: Mutex::new(Arc::new(server)),
            catalogue: Catalogue::default(),
            shared,
            session,
            dedicated,
        });
        if let Some(dedicated) = &connection.dedicated {
            dedicated.set_connection(&connection);
        }
        tokio::spawn(restore_after_restarts(
            Arc::downgrade(&connection),
            conversations,
        ));
        Ok(connection)
    }

    /// The traits of a tool; `None` if the server has no such tool (V1-CREATE-10). If its tools
    /// cannot be listed, the traits are the default, and the server itself rejects unknown tools.
    pub(super) async fn traits(&self, tool: &str) -> Option<ToolTraits> {
        let Ok(list) = self.upstream.tools().await else {
            return Some(ToolTraits::default());
        };
        if let Some(known) = self.catalogue.traits(&list, tool) {
            return Some(known);
        }
        // The cached list may be old: a server need not announce a change.
        match self.upstream.fresh_tools().await {
            Ok(list) => self.catalogue.traits(&list, tool),
            Err(_) => Some(ToolTraits::default()),
        }
    }

    /// What the server declared in the last handshake.
    pub(super) fn server(&self) -> Arc<ServerDescription> {
        let server = self.server.lock();
        server.clone()
    }

    /// Records the description of a restarted server, which may differ.
    fn set_server(&self, server: ServerDescription) {
        let mut current = self.server.lock();
        *current = Arc::new(server);
    }

    /// Sends subscriptions and log level again after a restart of the server.
    async fn restore_preferences(&self) {
        if self.server().is_modern() {
            // A modern server gets them with every request.
            return;
        }
        let listeners = &self.shared.listeners;
        let level = listeners.level();
        let mut restored = Ok(());
        for uri in listeners.resources() {
            restored = restored.and(self.upstream.subscribe(&uri).await);
        }
        if let Some(level) = level.and_then(|level| Raw::encode(&json!({ "level": level })).ok()) {
            let set = self.upstream.request(log::SET_LEVEL, Some(&level)).await;
            restored = restored.and(set.map(drop));
        }
        if let Err(fault) = restored {
            tracing::info!(
                fault = fault.brief(),
                "could not restore all subscriptions after the upstream restarted"
            );
        }
    }

    /// Registers a call until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, cx: &CallContext) -> ActiveCall {
        ActiveCall::begin(self.clone(), cx)
    }

    /// Registers a call whose task does not exist yet.
    pub(super) fn reserve(self: &Arc<Self>) -> ActiveCall {
        ActiveCall::reserve(self.clone())
    }

    /// The state that resumes its session. From now on the session outlives the connection.
    pub(super) fn save_session(&self) -> Option<SavedSession> {
        let session = self.session.as_ref()?;
        session.keep();
        session.saved()
    }

    /// Whether another connection can resume its tasks. Tasks of a child process end with it.
    pub(super) fn can_resume_tasks(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the connection is closed for good.
    pub(super) fn is_closed(&self) -> bool {
        self.upstream.is_closed()
    }

    /// Whether it has an active call or a listener.
    pub(super) fn is_needed(&self) -> bool {
        let shared = &self.shared;
        !self.is_closed() && (!shared.calls.is_empty() || shared.listeners.is_any_listening())
    }

    /// Waits until no call is active, for a limited time.
    pub(super) async fn wait_until_idle(&self, limit: Duration) {
        let until = Instant::now() + limit;
        while !self.shared.calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// The time since it was last used.
    pub(super) fn idle_time(&self) -> Duration {
        self.shared.last_used.lock().elapsed()
    }

    /// Records that `client` uses it. The client receives messages that belong to no call.
    pub(super) fn mark_used_by(&self, client: &Arc<ClientHandle>) {
        self.shared.mark_used();
        self.shared.listeners.add(client);
    }

    /// Subscribes a session to a resource. The upstream gets only the first subscription.
    pub(super) async fn subscribe(
        &self,
        session: &SessionId,
        uri: &str,
    ) -> Result<(), client::Error> {
        let listeners = &self.shared.listeners;
        if !listeners.subscribe(session, uri) {
            return Ok(());
        }
        let subscribed = self.upstream.subscribe(uri).await;
        if subscribed.is_err() {
            listeners.unsubscribe(session, uri);
        }
        subscribed
    }

    /// Unsubscribes a session from a resource. The upstream gets only the last unsubscription.
    pub(super) async fn unsubscribe(
        &self,
        session: &SessionId,
        uri: &str,
    ) -> Result<(), client::Error> {
        if self.shared.listeners.unsubscribe(session, uri) {
            self.upstream.unsubscribe(uri).await
        } else {
            Ok(())
        }
    }

    /// Records the minimum level of log messages.
    pub(super) fn set_log_level(&self, call: &Origin) {
        let params = call.params.as_ref();
        let level = params.and_then(|params| object::find(params.borrow(), &["level"]));
        self.shared.listeners.set_level(level.map(RawRef::to_raw));
    }

    /// The minimum level of log messages, if it is sent with every request.
    pub(super) fn log_level(&self, client: &ClientHandle) -> Option<Raw> {
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
async fn restore_after_restarts(
    connection: Weak<UpstreamConnection>,
    conversations: ConversationWatch,
) {
    let Ok(first) = conversations.conversation().await else {
        return;
    };
    let mut last = Arc::downgrade(&first);
    drop(first);
    while let Ok(conversation) = conversations.after(&last).await {
        last = Arc::downgrade(&conversation);
        let Some(connection) = connection.upgrade() else {
            return;
        };
        connection.set_server(conversation.server.clone());
        drop(conversation);
        connection.restore_preferences().await;
    }
}

/// The next step for an error of a connection.
fn advice(fault: &client::Error) -> &'static str {
    match fault {
        client::Error::Transport(TransportError::Refused {
            status: 401 | 403, ..
        }) => {
            "set its credentials in a header (`headers` of the server in the configuration file, or --header): \
             the gateway does not support OAuth, and it never forwards the credentials of its clients"
        }
        client::Error::Transport(TransportError::Refused {
            status: 404 | 405, ..
        }) => {
            "if it uses the old HTTP+SSE transport, use its URL for Streamable HTTP or its command instead"
        }
        client::Error::Transport(TransportError::Unreachable(cause))
            if cause.contains(UNKNOWN_HOST) =>
        {
            "check the host name in its URL, and that this machine can resolve names"
        }
        client::Error::Transport(TransportError::Unreachable(_)) => {
            "check its URL, or that its command is installed and its path is correct"
        }
        client::Error::Transport(TransportError::Ended { .. }) => {
            "run its command by hand to see what it needs"
        }
        client::Error::TimedOut(_) => "if it needs longer to start, raise the setting `startMs`",
        _ => "",
    }
}

/// How often to check whether calls are active before a connection is closed.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
