//! One connection to an upstream: whose it is, and the server at its other end.
//!
//! The calls under way on it are in [`ActiveCalls`], the clients that use it in [`Listeners`].

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
    /// The server as it introduced itself last.
    server: Mutex<Arc<ServerDescription>>,
    pub(super) catalogue: Catalogue,
    pub(super) shared: Arc<Shared>,
    /// The session at a URL.
    session: Option<Session>,
    /// Its place among those that are not shared.
    apart: Option<Apart>,
}

/// What it takes to connect to an upstream, for as long as that takes.
pub(super) struct Way {
    pub(super) name: Arc<str>,
    pub(super) target: Target,
    pub(super) era: Era,
    pub(super) handshake: Duration,
    pub(super) fronts: Arc<Fronts>,
}

/// What a connection shares with those that receive the messages of the upstream.
pub(super) struct Shared {
    pub(super) owner: Owner,
    pub(super) accepts: InputKinds,
    pub(super) fronts: Arc<Fronts>,
    pub(super) calls: ActiveCalls,
    pub(super) listeners: Listeners,
    last_used: Mutex<Instant>,
}

/// What a connection goes on with.
#[derive(Default)]
pub(super) struct Resumption {
    pub(super) calls: Vec<ResumedCall>,
    /// The session that they were in, where the upstream has sessions.
    pub(super) session: Option<SavedSession>,
}

impl Connection {
    /// Connects to an upstream for `client`, or goes on where a previous run of this process was.
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
            // The upstream may ask as soon as it is connected to.
            shared.calls.resume(call);
        }
        let session = resumed.session.map_or_else(Session::new, Session::again);
        let (target, session) = match way.target.in_session(session.clone()) {
            Some(target) => (target, Some(session)),
            None => (way.target.clone(), None),
        };
        let options = ClientOptions {
            server_name: Some(way.name.clone()),
            // BR-NEG-2: the target remembers what was found out.
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
            tracing::warn!(upstream, fault = fault.brief(), "it cannot be reached");
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

    /// What the server says of a tool; `None` if it has no such tool (V1-CREATE-10). Nothing is known where its tools cannot
    /// be listed: then the server itself refuses what it does not have.
    pub(super) async fn traits(&self, tool: &str) -> Option<Traits> {
        let Ok(list) = self.back.tools().await else {
            return Some(Traits::default());
        };
        if let Some(known) = self.catalogue.traits(&list, tool) {
            return Some(known);
        }
        // The list may be old: a server need not say that it has changed.
        match self.back.fresh_tools().await {
            Ok(list) => self.catalogue.traits(&list, tool),
            Err(_) => Some(Traits::default()),
        }
    }

    /// The server as it introduced itself last.
    pub(super) fn server(&self) -> Arc<ServerDescription> {
        let server = self.server.lock();
        server.clone()
    }

    /// Takes note of a server that has begun anew: it may be another than before.
    fn met_again(&self, server: ServerDescription) {
        let mut met = self.server.lock();
        *met = Arc::new(server);
    }

    /// Says again what a server that has begun anew does not know any more.
    async fn say_again(&self) {
        if self.server().is_modern() {
            // There it is said with every request.
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
                "a server that began anew was not told everything"
            );
        }
    }

    /// A call is under way, as long as what is returned lives.
    pub(super) fn begin(self: &Arc<Self>, cx: &CallContext) -> UnderWay {
        UnderWay::begin(self.clone(), cx)
    }

    /// The same for a call of which is not known yet whose it is: its questions wait until it is.
    pub(super) fn reserve(self: &Arc<Self>) -> UnderWay {
        UnderWay::reserve(self.clone())
    }

    /// What it takes to go on in its session, which from now on outlives the connection.
    pub(super) fn keep_session(&self) -> Option<SavedSession> {
        let session = self.session.as_ref()?;
        session.keep();
        session.saved()
    }

    /// Whether its tasks can be found again by another connection: those of a process end with it.
    pub(super) fn outlives_us(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the connection will not come back.
    pub(super) fn is_over(&self) -> bool {
        self.back.is_closed()
    }

    /// Whether something runs on it, or somebody listens.
    pub(super) fn is_needed(&self) -> bool {
        let shared = &self.shared;
        !self.is_over() && (!shared.calls.is_empty() || shared.listeners.is_any_listening())
    }

    /// Waits until no call is under way, but not for longer than `patience`.
    pub(super) async fn quiet(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.shared.calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How long nobody has used it.
    pub(super) fn idle(&self) -> Duration {
        self.shared.last_used.lock().elapsed()
    }

    /// `client` uses it, and hears what belongs to no call.
    pub(super) fn used_by(&self, client: &Arc<ClientHandle>) {
        self.shared.mark_used();
        self.shared.listeners.add(client);
    }

    /// A session wants to hear of a resource; the upstream is told of the first.
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

    /// A session does not want to hear of a resource any more; the upstream is told of the last.
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

    /// Takes note from which level on log messages are wanted.
    pub(super) fn remember_level(&self, call: &Origin) {
        let params = call.params.as_ref();
        let level = params.and_then(|params| object::find(params.borrow(), &["level"]));
        self.shared.listeners.set_level(level.map(RawRef::to_raw));
    }

    /// From which level on log messages are wanted, where every request says so.
    pub(super) fn level(&self, client: &ClientHandle) -> Option<Raw> {
        if !client.has_session() || !self.server().is_modern() {
            return None;
        }
        self.shared.listeners.level()
    }
}

impl Shared {
    /// The connection is used now.
    pub(super) fn mark_used(&self) {
        *self.last_used.lock() = Instant::now();
    }
}

/// Reminds a server whenever it has begun anew, as long as the connection lives.
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

/// What may help where a server does not let us in.
fn advice(fault: &client::Error) -> &'static str {
    match fault {
        client::Error::Transport(LinkError::Refused {
            status: 401 | 403, ..
        }) => {
            "; give it its credentials in a header (`headers` of the server in the configuration file, or --header): \
             the gateway does not sign in by OAuth, and never passes on what its clients send"
        }
        client::Error::Transport(LinkError::Refused {
            status: 404 | 405, ..
        }) => {
            "; if it speaks the old HTTP+SSE transport, use its address for Streamable HTTP or its command instead"
        }
        client::Error::Transport(LinkError::Unreachable(_)) => {
            "; check its URL, or that its command is installed and the path is right"
        }
        client::Error::Transport(LinkError::Ended { .. }) => {
            "; run its command by hand to see what it needs"
        }
        client::Error::TimedOut(_) => "; if it takes long to begin, raise the setting `startMs`",
        _ => "",
    }
}

/// How often is looked whether calls are under way, when a connection is to be closed.
const LOOK: Duration = Duration::from_millis(10);
