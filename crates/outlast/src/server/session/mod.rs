//! One legacy session: who the client is, its streams and preferences, what it has in flight, what it was sent.
//!
//! Each part of its state is a type of its own file, with one lock for one small structure.

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

use outlast_engine::{Answer, AskKind, Owner, Scope, TaskId, random};
use outlast_wire::envelope::{ErrorObject, Id, write};
use outlast_wire::log::{self, Level};
use outlast_wire::v1;
use outlast_wire::{Raw, RawRef, codes, object};
use tokio::sync::{OnceCell, watch};

use super::client_handle::Outbox;
use super::{Client, Front, Introduction, Peer};
use call_input_responses::CallAnswers;
use client_requests::ClientRequests;
use created_tasks::MadeTasks;
use in_flight::InFlight;
use input_requests::InputRequests;
use preferences::SessionPreferences;
use task_events::ShownTasks;

pub(super) use call_input_responses::Answers;
pub(super) use client_requests::Put;
pub(super) use preferences::PreferenceChange;
pub(crate) use registry::Sessions;
pub(crate) use slots::{Entry, NoRoom};
pub(crate) use streams::{Attached, Board, Kind, Out, StreamId};
pub(crate) use table::{Bounds, SessionTable};
pub(super) use task_events::{answered, progress_params, question_id};
pub(crate) use usage::Permit;

/// The name of a session: visible ASCII that cannot be guessed (V1-SESS-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// One legacy session.
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Owner,
    pub(crate) front: Arc<Front>,
    pub(crate) board: Board,
    /// Itself, for a client that is reached through it.
    this: Weak<Session>,
    client: OnceLock<Arc<Client>>,
    /// What the service said of itself to the client.
    about: OnceCell<Introduction>,
    /// Whether the client has asked for a task.
    used_tasks: AtomicBool,
    made_tasks: MadeTasks,
    pub(super) in_flight: InFlight,
    pub(super) call_answers: CallAnswers,
    pub(super) input_requests: InputRequests,
    pub(super) preferences: SessionPreferences,
    client_requests: ClientRequests,
    shown: ShownTasks,
}

impl SessionId {
    /// The session of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// A name that no session has.
    pub(crate) fn drawn() -> Self {
        Self::new(random::token::<ID_BYTES>())
    }

    /// Whether `name` has the form of a drawn one.
    pub(crate) fn could_be_drawn(name: &str) -> bool {
        random::is_token::<ID_BYTES>(name)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Session {
    /// A session of `owner` whose client has not introduced itself yet.
    pub fn new(front: Arc<Front>, id: SessionId, owner: Owner) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            id,
            owner,
            front,
            board: Board::default(),
            this: this.clone(),
            client: OnceLock::new(),
            about: OnceCell::new(),
            used_tasks: AtomicBool::new(false),
            made_tasks: MadeTasks::default(),
            in_flight: InFlight::default(),
            call_answers: CallAnswers::default(),
            input_requests: InputRequests::default(),
            preferences: SessionPreferences::default(),
            client_requests: ClientRequests::default(),
            shown: ShownTasks::default(),
        })
    }

    pub(crate) fn scope(&self) -> Scope {
        if self.front.for_operator {
            Scope::Anyone
        } else {
            Scope::Of(self.owner.clone())
        }
    }

    /// The client, once it has introduced itself.
    pub(crate) fn client(&self) -> Option<&Arc<Client>> {
        self.client.get()
    }

    /// The same as it is stored with the session.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.client().map(|client| client.peer())
    }

    /// The client that said this of itself, as it can be reached in this session.
    pub(crate) fn as_client(&self, peer: Peer) -> Arc<Client> {
        let (session, owner) = (self.id.clone(), self.owner.clone());
        Arc::new(Client::new(session, owner, peer, self.this.clone()))
    }

    /// Records who the client is, and what the service said to it. The first introduction counts.
    pub(crate) fn introduce(&self, client: Arc<Client>, about: Option<Introduction>) -> bool {
        let first = self.client.set(client).is_ok();
        if first {
            self.front.meet(&self.id, &self.this);
        }
        if let Some(about) = about.filter(|_| first) {
            let _ = self.about.set(about);
        }
        first
    }

    /// What the service says of itself to the client.
    pub(crate) async fn introduction(&self) -> Result<&Introduction, ErrorObject> {
        let client = self
            .client()
            .ok_or_else(|| codes::invalid_request("the session begins with `initialize`"))?;
        self.about
            .get_or_try_init(|| self.front.service.introduce(client))
            .await
    }

    /// What the service has said of itself, if it has.
    pub(super) fn said(&self) -> Option<&Introduction> {
        self.about.get()
    }

    /// Records that the client knows how to use tasks.
    pub(super) fn has_used_tasks(&self) {
        self.used_tasks.store(true, Ordering::Relaxed);
    }

    /// Whether the client knows how to use tasks: it says so, or it has asked for one.
    pub(super) fn uses_tasks(&self, client: &Client) -> bool {
        let declared =
            object::find(client.capabilities(), &["tasks"]).is_some_and(RawRef::is_object);
        client.peer().has_tasks() && (declared || self.used_tasks.load(Ordering::Relaxed))
    }

    /// Whether the client wants log messages of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        level >= self.preferences.level().unwrap_or(DEFAULT_LEVEL)
    }

    /// Hands over the response to a request that belongs to no call; gives it back if there is none of that id.
    pub(super) fn answer_client_request(&self, id: &Id, answer: Answer) -> Option<Answer> {
        self.client_requests.answer(id, answer)
    }

    /// Attaches a client that listens: to the rest of the stream whose event it `saw` last, else to a general one.
    /// Returns the place after which the stream goes on. `names_event` says whether the client named an event at all.
    pub(crate) fn listen(
        self: &Arc<Self>,
        saw: Option<(StreamId, u64)>,
        names_event: bool,
    ) -> (Attached, u64) {
        let resumed = saw.and_then(|(stream, place)| {
            let attached = self.board.resume(stream, place)?;
            Some((attached, place))
        });
        let lost = names_event && resumed.is_none();
        let (attached, place) = resumed.unwrap_or_else(|| (self.board.open(Kind::General), 0));
        let (session, stream) = (self.clone(), attached.stream);
        tokio::spawn(async move {
            // The events of the lost stream are gone, so the client gets the status of all open tasks.
            if lost {
                session.send_open_tasks(stream).await;
            }
            session.listens().await;
        });
        (attached, place)
    }

    /// Sends the status of every open task of the owner.
    async fn send_open_tasks(&self, stream: StreamId) {
        if !self.peer().is_some_and(Peer::has_tasks) {
            return;
        }
        let open = self.front.engine.open_tasks(&self.owner).await;
        for task in open.unwrap_or_default() {
            let text = task.id().text();
            let now = self.front.engine.now();
            let params = v1::task(&task.view(&text, now));
            let line = write::notification(v1::method::STATUS, Some(params.borrow()));
            self.board.send(stream, line);
        }
    }

    /// A general stream is there: input requests can travel on it. Open tasks that no session follows, from before a
    /// restart of the server or of the client, are followed by this session from now on.
    pub(crate) async fn listens(self: &Arc<Self>) {
        self.client_requests.listens();
        let open = self.front.engine.open_tasks(&self.owner).await;
        for task in open.unwrap_or_default() {
            self.front.follow(self, task.id());
        }
        self.input_requests.deliver(&self.board, |_| true);
    }

    /// Ends everything that belongs to the session: its client is gone for good. Tasks of a principal stay, its other
    /// sessions reach them (V1-SESS-8, A1-20). Tasks that only this session could reach are cancelled (BD-22).
    async fn end(&self) {
        if matches!(self.owner, Owner::Session(_)) {
            let engine = &self.front.engine;
            for task in engine.open_tasks(&self.owner).await.unwrap_or_default() {
                // One that has ended meanwhile needs nothing.
                let _ = engine.cancel_now(&self.scope(), task.id()).await;
            }
        }
        self.in_flight.cancel_all();
        self.board.close();
    }

    /// Whether anything can be sent to the client now.
    pub(crate) fn is_reachable(&self) -> bool {
        self.board.general().is_some() || self.input_requests.has_live_wait(&self.board)
    }

    /// The stream for events of a task: the general one, else one on which the client waits for the task (BD-11), else
    /// the general one that broke, whose client may come back for what it missed (S2-62).
    fn stream_for_events(&self, task: TaskId) -> Option<StreamId> {
        self.board
            .general()
            .or_else(|| self.input_requests.waiting_stream(&self.board, task))
            .or_else(|| self.board.last_general())
    }
}

impl Outbox for Session {
    /// Sends it on a general stream, if there is one.
    fn notify(&self, method: &str, params: Option<&Raw>) {
        let params = params.map(Raw::borrow);
        let unwanted =
            method == log::MESSAGE && Level::wanted(params).is_ok_and(|level| !self.wants(level));
        if let Some(stream) = self.board.general().filter(|_| !unwanted) {
            self.board.send(stream, write::notification(method, params));
        }
    }

    fn is_open(&self) -> bool {
        self.board.general().is_some()
    }

    fn listening(&self) -> watch::Receiver<bool> {
        self.client_requests.listening()
    }

    fn ask(&self, kind: AskKind, params: Option<&Raw>) -> Option<Put> {
        self.client_requests.put(&self.board, kind, params)
    }

    fn take_back(&self, question: &Id) {
        self.client_requests.take_back(&self.board, question);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.front.leave(&self.id, &self.this);
    }
}

/// From which level on messages are sent to a client that has not set one.
const DEFAULT_LEVEL: Level = Level::Info;

/// How many random bytes a session id stands for: 128 bits cannot be guessed.
const ID_BYTES: usize = 16;
