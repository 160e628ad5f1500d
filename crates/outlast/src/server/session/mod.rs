//! One legacy session: its client, streams, preferences, and requests in flight.
//!
//! Each part of the state is a type with its own file and its own lock.

mod call_input_responses;
mod client_requests;
mod created_tasks;
mod in_flight;
mod input_requests;
mod preferences;
mod record;
mod registry;
mod slots;
mod streams;
mod table;
mod task_events;
mod usage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use outlast_engine::{InputKind, InputResponse, Owner, Scope, TaskId, random};
use outlast_wire::envelope::{ErrorObject, Id, write};
use outlast_wire::log::{self, Level};
use outlast_wire::v1;
use outlast_wire::{Raw, RawRef, codes, object};
use tokio::sync::{OnceCell, watch};

use super::client_handle::ClientChannel;
use super::{BackendDescription, ClientHandle, ClientInfo, McpServer};
use call_input_responses::CallInputResponses;
use client_requests::ClientRequests;
use created_tasks::CreatedTasks;
use in_flight::InFlight;
use input_requests::InputRequests;
use preferences::SessionPreferences;
use task_events::FollowedTasks;

pub(super) use call_input_responses::InputResponseReceiver;
pub(super) use client_requests::PendingClientRequest;
pub(super) use preferences::PreferenceChange;
#[cfg(feature = "http")]
pub(crate) use record::{HOME_KIND, home_of_session};
pub(crate) use registry::Sessions;
pub(crate) use slots::{LiveSession, SessionLimitReached};
pub(crate) use streams::{SessionStreams, StreamEvent, StreamId, StreamKind, StreamReader};
pub(crate) use table::{SessionLimits, SessionTable};
pub(super) use task_events::{input_request_id, parse_input_request_id, progress_params};
pub(crate) use usage::StreamPermit;

/// The id of a session: visible ASCII that cannot be guessed (V1-SESS-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// One legacy session.
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Owner,
    pub(crate) server: Arc<McpServer>,
    pub(crate) streams: SessionStreams,
    /// Itself, for the channel of its client.
    this: Weak<Session>,
    client: OnceLock<Arc<ClientHandle>>,
    /// How the backend described itself to the client.
    description: OnceCell<BackendDescription>,
    /// Whether the client has requested a task.
    used_tasks: AtomicBool,
    created_tasks: CreatedTasks,
    pub(super) in_flight: InFlight,
    pub(super) call_input_responses: CallInputResponses,
    pub(super) input_requests: InputRequests,
    pub(super) preferences: SessionPreferences,
    client_requests: ClientRequests,
    followed_tasks: FollowedTasks,
}

impl SessionId {
    /// The session with this id.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// A new random id.
    pub(crate) fn random() -> Self {
        Self::new(random::token::<SESSION_ID_BYTES>())
    }

    /// Whether `name` has the form of a random id.
    pub(crate) fn is_well_formed(name: &str) -> bool {
        random::is_token::<SESSION_ID_BYTES>(name)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Session {
    /// A session of `owner`, before `initialize`.
    pub fn new(server: Arc<McpServer>, id: SessionId, owner: Owner) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            id,
            owner,
            server,
            streams: SessionStreams::default(),
            this: this.clone(),
            client: OnceLock::new(),
            description: OnceCell::new(),
            used_tasks: AtomicBool::new(false),
            created_tasks: CreatedTasks::default(),
            in_flight: InFlight::default(),
            call_input_responses: CallInputResponses::default(),
            input_requests: InputRequests::default(),
            preferences: SessionPreferences::default(),
            client_requests: ClientRequests::default(),
            followed_tasks: FollowedTasks::default(),
        })
    }

    pub(crate) fn scope(&self) -> Scope {
        if self.server.for_operator {
            Scope::AnyTask
        } else {
            Scope::OwnedBy(self.owner.clone())
        }
    }

    /// The client, after `initialize`.
    pub(crate) fn client(&self) -> Option<&Arc<ClientHandle>> {
        self.client.get()
    }

    /// What the client declared, as it is stored with the session.
    pub(crate) fn client_info(&self) -> Option<&ClientInfo> {
        self.client().map(|client| client.client_info())
    }

    /// A handle to the client of this session.
    pub(crate) fn client_handle(&self, client_info: ClientInfo) -> Arc<ClientHandle> {
        let (session, owner) = (self.id.clone(), self.owner.clone());
        Arc::new(ClientHandle::new(
            session,
            owner,
            client_info,
            self.this.clone(),
        ))
    }

    /// Sets the client and the description that it got; returns `false` if the session has a
    /// client.
    pub(crate) fn set_client(
        &self,
        client: Arc<ClientHandle>,
        description: Option<BackendDescription>,
    ) -> bool {
        let first = self.client.set(client).is_ok();
        if first {
            self.server.add_session(&self.id, &self.this);
        }
        if let Some(description) = description.filter(|_| first) {
            let _ = self.description.set(description);
        }
        first
    }

    /// The description of the backend for this client.
    pub(crate) async fn description(&self) -> Result<&BackendDescription, ErrorObject> {
        let client = self.client().ok_or_else(|| {
            codes::invalid_request("the first request of a session must be `initialize`")
        })?;
        self.description
            .get_or_try_init(|| self.server.describe(client))
            .await
    }

    /// The description of the backend, if the client already has it.
    pub(super) fn known_description(&self) -> Option<&BackendDescription> {
        self.description.get()
    }

    /// Records that the client has requested a task.
    pub(super) fn mark_task_use(&self) {
        self.used_tasks.store(true, Ordering::Relaxed);
    }

    /// Whether the client can use tasks: it declares them, or it has requested one.
    pub(super) fn uses_tasks(&self, client: &ClientHandle) -> bool {
        let declared =
            object::find(client.capabilities(), &["tasks"]).is_some_and(RawRef::is_object);
        client.client_info().has_tasks() && (declared || self.used_tasks.load(Ordering::Relaxed))
    }

    /// Whether the client wants log messages of this level.
    pub(crate) fn wants_log(&self, level: Level) -> bool {
        level >= self.preferences.level().unwrap_or(DEFAULT_LOG_LEVEL)
    }

    /// Routes the response to a request that belongs to no call; returns it if no request has that
    /// id.
    pub(super) fn complete_client_request(
        &self,
        id: &Id,
        answer: InputResponse,
    ) -> Option<InputResponse> {
        self.client_requests.complete(id, answer)
    }

    /// Attaches a listening client: to the rest of the stream of its last event, else to a new
    /// general stream. Returns the position after which the stream continues. `sent_event_id` says
    /// whether the client sent an event id.
    pub(crate) fn listen(
        self: &Arc<Self>,
        last_seen: Option<(StreamId, u64)>,
        sent_event_id: bool,
    ) -> (StreamReader, u64) {
        let resumed = last_seen.and_then(|(stream, position)| {
            let reader = self.streams.resume(stream, position)?;
            Some((reader, position))
        });
        let lost = sent_event_id && resumed.is_none();
        let (reader, position) =
            resumed.unwrap_or_else(|| (self.streams.open(StreamKind::General), 0));
        let (session, stream) = (self.clone(), reader.stream);
        tokio::spawn(async move {
            // The events of the old stream are lost, so send the status of all open tasks.
            if lost {
                session.send_open_tasks(stream).await;
            }
            session.start_listening().await;
        });
        (reader, position)
    }

    /// Sends the status of every open task of the owner.
    async fn send_open_tasks(&self, stream: StreamId) {
        if !self.client_info().is_some_and(ClientInfo::has_tasks) {
            return;
        }
        let open = self.server.engine.open_tasks(&self.owner).await;
        for task in open.unwrap_or_default() {
            let text = task.id().text();
            let now = self.server.engine.now();
            let params = v1::task(&task.view(&text, now));
            let line = write::notification(v1::method::STATUS, Some(params.borrow()));
            self.streams.send(stream, line);
        }
    }

    /// Records that the client listens, so that input requests can be sent. The session becomes the
    /// follower of the owner's open tasks that no session follows.
    pub(crate) async fn start_listening(self: &Arc<Self>) {
        self.client_requests.set_listening();
        let open = self.server.engine.open_tasks(&self.owner).await;
        for task in open.unwrap_or_default() {
            self.server.follow(self, task.id());
        }
        self.input_requests.deliver(&self.streams, |_| true);
    }

    /// Ends everything that belongs to the session. Tasks of a principal stay, because its other
    /// sessions can access them (V1-SESS-8, A1-20). Tasks that only this session can access are
    /// cancelled (BD-22).
    async fn end(&self) {
        if matches!(self.owner, Owner::Session(_)) {
            let engine = &self.server.engine;
            for task in engine.open_tasks(&self.owner).await.unwrap_or_default() {
                // A task that ended meanwhile needs no cancellation.
                let _ = engine.cancel_now(&self.scope(), task.id()).await;
            }
        }
        self.in_flight.cancel_all();
        self.streams.close();
    }

    /// Whether the client can receive messages now.
    pub(crate) fn is_reachable(&self) -> bool {
        self.streams.general().is_some() || self.input_requests.has_live_wait(&self.streams)
    }

    /// The stream for events of a task: a general one, else one on which the client waits for the
    /// task (BD-11), else the last general one, which the client may resume (S2-62).
    fn stream_for_events(&self, task: TaskId) -> Option<StreamId> {
        self.streams
            .general()
            .or_else(|| self.input_requests.waiting_stream(&self.streams, task))
            .or_else(|| self.streams.last_general())
    }
}

impl ClientChannel for Session {
    /// Sends it on a general stream, if there is one.
    fn notify(&self, method: &str, params: Option<&Raw>) {
        let params = params.map(Raw::borrow);
        let is_unwanted = method == log::MESSAGE
            && Level::requested(params).is_ok_and(|level| !self.wants_log(level));
        if let Some(stream) = self.streams.general().filter(|_| !is_unwanted) {
            self.streams
                .send(stream, write::notification(method, params));
        }
    }

    fn is_open(&self) -> bool {
        self.streams.general().is_some()
    }

    fn listening(&self) -> watch::Receiver<bool> {
        self.client_requests.listening()
    }

    fn send_request(&self, kind: InputKind, params: Option<&Raw>) -> Option<PendingClientRequest> {
        self.client_requests.send(&self.streams, kind, params)
    }

    fn cancel_request(&self, id: &Id) {
        self.client_requests.cancel(&self.streams, id);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.server.remove_session(&self.id, &self.this);
    }
}

/// The lowest level of log messages for a client that has set none.
const DEFAULT_LOG_LEVEL: Level = Level::Info;

/// How many random bytes a session id has: 128 bits cannot be guessed.
const SESSION_ID_BYTES: usize = 16;
