//! One connection to an upstream: whose it is, and which calls are under way on it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::engine::CallContext;
use outlast_engine::{Accepts, Answer, AskKey, Origin, Owner, TaskId, random};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes, log, object};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::again::CallPlace;
use super::asks::Asks;
use super::catalogue::{Catalogue, Traits};
use super::pool::Apart;
use crate::client::{
    self, ClientOptions, ConversationWatch, Era, ReceiverOptions, ReconnectPolicy,
    ServerDescription, Target,
};
use crate::fronts::Fronts;
use crate::server::{Client, SessionId};
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

/// What a connection shares with whoever hears the upstream.
pub(super) struct Shared {
    pub(super) owner: Owner,
    pub(super) accepts: Accepts,
    pub(super) fronts: Arc<Fronts>,
    state: Mutex<State>,
}

struct State {
    /// The calls that are under way, by the name that their questions carry.
    calls: HashMap<Arc<str>, Seat>,
    /// Input requests of these calls that a previous run of this process has put to its clients, and that the upstream has not
    /// sent again.
    left: HashMap<Arc<str>, Vec<LeftRequest>>,
    /// What is stored to find these calls again.
    places: HashMap<Arc<str>, Arc<CallPlace>>,
    /// The calls that go on with these tasks of the upstream after a restart.
    resumed: HashMap<String, Arc<str>>,
    /// Those who hear what belongs to no call.
    clients: Vec<Weak<Client>>,
    /// Who wants to hear of which resource.
    subscriptions: HashMap<String, BTreeSet<String>>,
    /// From which level on log messages are wanted, as a JSON string.
    level: Option<Raw>,
    used: Instant,
}

/// The place of a call among those under way.
#[derive(Clone)]
pub(super) enum Seat {
    Taken(CallContext),
    /// Of a call that a previous run of this process began, and that waits for the connection.
    Resuming(CallContext),
    /// Kept for a call that has begun at the upstream, and soon here.
    Kept(watch::Receiver<Option<CallContext>>),
}

/// What a connection goes on with.
#[derive(Default)]
pub(super) struct Resumption {
    pub(super) calls: Vec<ResumedCall>,
    /// The session that they were in, where the upstream has sessions.
    pub(super) session: Option<SavedSession>,
}

/// A call that a previous run of this process began: what it has asked is not asked a second time.
#[derive(Clone)]
pub(super) struct ResumedCall {
    pub(super) call: CallContext,
    /// The upstream's task.
    pub(super) task: Option<String>,
    /// What is stored of it.
    pub(super) place: Arc<CallPlace>,
    /// Its input requests that are open or answered.
    pub(super) left: Vec<LeftRequest>,
    /// The session that it was in, where the upstream has sessions.
    pub(super) session: Option<SavedSession>,
    /// The era in which the upstream was spoken to.
    pub(super) era: Era,
}

/// An input request that a previous run of this process has put to its client.
#[derive(Clone)]
pub(super) struct LeftRequest {
    pub(super) key: AskKey,
    /// The answer, where it is waited for already; closed if there will be none.
    pub(super) answer: Option<watch::Receiver<Option<Answer>>>,
}

impl ResumedCall {
    /// Whether both are the same call.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.call.id() == other.call.id()
    }
}

/// That a call is under way on a connection.
pub(super) struct UnderWay {
    connection: Arc<Connection>,
    name: Arc<str>,
    /// Says whose it is, where that is not known from the beginning.
    kept: Option<watch::Sender<Option<CallContext>>>,
}

impl Connection {
    /// Connects to an upstream for `client`, or goes on where a previous run of this process was.
    pub(super) async fn open(
        way: &Way,
        client: &Arc<Client>,
        resumed: Resumption,
        apart: Option<Apart>,
    ) -> Result<Arc<Self>, ErrorObject> {
        let shared = Arc::new(Shared {
            owner: client.owner().clone(),
            accepts: client.accepts(),
            fronts: way.fronts.clone(),
            state: Mutex::new(State {
                calls: HashMap::new(),
                left: HashMap::new(),
                places: HashMap::new(),
                resumed: HashMap::new(),
                clients: vec![Arc::downgrade(client)],
                subscriptions: HashMap::new(),
                level: None,
                used: Instant::now(),
            }),
        });
        for call in &resumed.calls {
            // The upstream may ask as soon as it is connected to.
            shared.resume(call);
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
            receiver_tasks: (shared.accepts != Accepts::NONE).then(ReceiverOptions::default),
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
        let (resources, level) = {
            let state = self.shared.state();
            let resources: Vec<_> = state.subscriptions.keys().cloned().collect();
            (resources, state.level.clone())
        };
        let mut said = Ok(());
        for uri in resources {
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
        let name = name_of(cx);
        let seat = Seat::Taken(cx.clone());
        self.shared.state().calls.insert(name.clone(), seat);
        UnderWay {
            connection: self.clone(),
            name,
            kept: None,
        }
    }

    /// The same for a call of which is not known yet whose it is: its questions wait until it is.
    pub(super) fn reserve(self: &Arc<Self>) -> UnderWay {
        let name: Arc<str> = random::token::<16>().into();
        let (tell, told) = watch::channel(None);
        let seat = Seat::Kept(told);
        self.shared.state().calls.insert(name.clone(), seat);
        UnderWay {
            connection: self.clone(),
            name,
            kept: Some(tell),
        }
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
        let mut state = self.shared.state();
        state.forget_cancelled();
        state.clients.retain(|client| client.strong_count() > 0);
        let listens =
            |client: &Weak<Client>| client.upgrade().is_some_and(|client| client.is_listening());
        let wanted = !state.calls.is_empty() || !state.subscriptions.is_empty();
        !self.is_over() && (wanted || state.clients.iter().any(listens))
    }

    /// Waits until no call is under way, but not for longer than `patience`.
    pub(super) async fn quiet(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.shared.state().calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How long nobody has used it.
    pub(super) fn idle(&self) -> Duration {
        self.shared.state().used.elapsed()
    }

    /// `client` uses it, and hears what belongs to no call.
    pub(super) fn used_by(&self, client: &Arc<Client>) {
        let mut state = self.shared.state();
        state.used = Instant::now();
        // Clients without a session hear nothing of that kind.
        let known = |known: &Weak<Client>| known.ptr_eq(&Arc::downgrade(client));
        if client.has_session() && !state.clients.iter().any(known) {
            state.clients.retain(|client| client.strong_count() > 0);
            state.clients.push(Arc::downgrade(client));
        }
    }

    /// A session wants to hear of a resource; the upstream is told of the first.
    pub(super) async fn listen(&self, session: &SessionId, uri: &str) -> Result<(), client::Error> {
        let first = {
            let mut state = self.shared.state();
            let who = state.subscriptions.entry(uri.to_owned()).or_default();
            who.insert(session.as_str().to_owned());
            who.len() == 1
        };
        if !first {
            return Ok(());
        }
        let told = self.back.subscribe(uri).await;
        if told.is_err() {
            self.forget(session, uri);
        }
        told
    }

    /// A session does not want to hear of a resource any more; the upstream is told of the last.
    pub(super) async fn unlisten(
        &self,
        session: &SessionId,
        uri: &str,
    ) -> Result<(), client::Error> {
        if self.forget(session, uri) {
            self.back.unsubscribe(uri).await
        } else {
            Ok(())
        }
    }

    /// Forgets that a session wants to hear of a resource; whether nobody does any more.
    fn forget(&self, session: &SessionId, uri: &str) -> bool {
        let mut state = self.shared.state();
        let Some(who) = state.subscriptions.get_mut(uri) else {
            return true;
        };
        who.remove(session.as_str());
        let nobody = who.is_empty();
        if nobody {
            state.subscriptions.remove(uri);
        }
        nobody
    }

    /// Takes note from which level on log messages are wanted.
    pub(super) fn remember_level(&self, call: &Origin) {
        let params = call.params.as_ref();
        let level = params.and_then(|params| object::find(params.borrow(), &["level"]));
        self.shared.state().level = level.map(RawRef::to_raw);
    }

    /// From which level on log messages are wanted, where every request says so.
    pub(super) fn level(&self, client: &Client) -> Option<Raw> {
        if !client.has_session() || !self.server().is_modern() {
            return None;
        }
        self.shared.state().level.clone()
    }
}

impl Shared {
    /// The call of that name, or the one that goes on with this task of the upstream; without either, the only call there is.
    pub(super) fn call(&self, name: Option<&str>, task: Option<&str>) -> Result<Seat, Unclear> {
        let mut state = self.state();
        state.forget_cancelled();
        let resumed = task.and_then(|task| state.resumed.get(task)).cloned();
        let name = name.or(resumed.as_deref());
        if let Some(call) = name.and_then(|name| state.calls.get(name)) {
            return Ok(call.clone());
        }
        // A call that is cancelled is still there while it tidies up.
        let (live, cancelled): (Vec<_>, Vec<_>) =
            state.calls.values().partition(|call| !call.is_cancelled());
        match (&live[..], &cancelled[..]) {
            ([call], _) | ([], [call]) => Ok((*call).clone()),
            ([], []) => Err(Unclear::None),
            _ => Err(Unclear::Several),
        }
    }

    /// A call of a previous run of this process goes on, unless it does already.
    pub(super) fn resume(&self, resumed: &ResumedCall) {
        let name = name_of(&resumed.call);
        let mut state = self.state();
        if state.calls.contains_key(&name) {
            return;
        }
        if let Some(task) = resumed.task.clone() {
            state.resumed.insert(task, name.clone());
        }
        state.places.insert(name.clone(), resumed.place.clone());
        state.left.insert(name.clone(), resumed.left.clone());
        state
            .calls
            .insert(name, Seat::Resuming(resumed.call.clone()));
    }

    /// What is stored to find a call again.
    pub(super) fn place(&self, call: &CallContext) -> Arc<CallPlace> {
        let mut state = self.state();
        state.places.entry(name_of(call)).or_default().clone()
    }

    /// An input request of a call that a previous run has put under a key of this sort. It is returned once.
    pub(super) fn take_left(
        &self,
        call: TaskId,
        sort: impl Fn(&AskKey) -> bool,
    ) -> Option<LeftRequest> {
        let mut state = self.state();
        let left = state.left.get_mut(call.text().as_str())?;
        let at = left.iter().position(|left| sort(&left.key))?;
        Some(left.remove(at))
    }

    /// Every input request that a previous run has put for a call and that the upstream has not sent again, without those that
    /// it sent in its session: they are open until the upstream cancels them. FastMCP 3 reports `working` meanwhile.
    pub(super) fn take_unclaimed(&self, call: TaskId) -> Vec<AskKey> {
        let mut state = self.state();
        let Some(left) = state.left.get_mut(call.text().as_str()) else {
            return Vec::new();
        };
        let unclaimed = left.extract_if(.., |left| left.answer.is_none());
        unclaimed.map(|left| left.key).collect()
    }

    /// Those who hear what belongs to no call.
    pub(super) fn clients(&self) -> Vec<Arc<Client>> {
        self.state()
            .clients
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Forgets a call.
    fn forget(&mut self, name: &Arc<str>) {
        self.calls.remove(name);
        self.left.remove(name);
        self.places.remove(name);
        self.resumed.retain(|_, call| call != name);
    }

    /// Forgets calls that were cancelled before they had the connection.
    fn forget_cancelled(&mut self) {
        let cancelled = |seat: &Seat| matches!(seat, Seat::Resuming(cx) if cx.is_cancelled());
        let names = self.calls.iter().filter(|(_, seat)| cancelled(seat));
        let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.forget(&name);
        }
    }
}

/// Why something belongs to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    None,
    Several,
}

impl Seat {
    /// Whether its caller wants it to stop.
    fn is_cancelled(&self) -> bool {
        self.taken().is_some_and(|cx| cx.is_cancelled())
    }

    /// The call, if it is known whose it is.
    pub(super) fn taken(&self) -> Option<CallContext> {
        match self {
            Self::Taken(cx) | Self::Resuming(cx) => Some(cx.clone()),
            Self::Kept(told) => told.borrow().clone(),
        }
    }

    /// The call, once it is known whose it is; `None` if it is given up before.
    pub(super) async fn whose(self) -> Option<CallContext> {
        match self {
            Self::Taken(cx) | Self::Resuming(cx) => Some(cx),
            Self::Kept(mut told) => told.wait_for(Option::is_some).await.ok()?.clone(),
        }
    }
}

impl UnderWay {
    /// The name under which its questions find it.
    pub(super) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Tells whose it is, once that is known.
    pub(super) fn whose(&self) -> Option<watch::Receiver<Option<CallContext>>> {
        self.kept.as_ref().map(watch::Sender::subscribe)
    }

    /// Says whose it is.
    pub(super) fn belongs_to(&self, cx: &CallContext) {
        if let Some(kept) = &self.kept {
            kept.send_replace(Some(cx.clone()));
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.connection.shared.state();
        let call = self.kept.as_ref().and_then(|kept| {
            let call = kept.borrow();
            call.as_ref().map(name_of)
        });
        state.forget(&self.name);
        state.forget(call.as_ref().unwrap_or(&self.name));
        state.used = Instant::now();
    }
}

/// The name that the questions of a call carry.
fn name_of(call: &CallContext) -> Arc<str> {
    call.id().text().as_str().into()
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
