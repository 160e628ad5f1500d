//! One legacy session: who the client is, what it has in flight, what it was asked.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use outlast_engine::{Answer, AskKey, AskKind, Owner, Scope, TaskId, random};
use outlast_wire::envelope::{ErrorObject, Id, write};
use outlast_wire::log::{self, Level};
use outlast_wire::{Raw, RawRef, codes, object};
use tokio::sync::{OnceCell, mpsc, oneshot, watch};

use super::asking::{Asking, Put};
use super::client::Outbox;
use super::follow::Shown;
use super::wishes::Held;
use super::{Board, Client, Front, Introduction, Peer, StreamId};

/// The name of a session: visible ASCII that nobody can guess (V1-SESS-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// One legacy session.
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Owner,
    pub(crate) front: Arc<Front>,
    pub(crate) board: Board,
    /// Itself, for those who are told how to reach the client.
    this: Weak<Session>,
    client: OnceLock<Arc<Client>>,
    /// What the service said of itself to the client.
    about: OnceCell<Introduction>,
    /// Questions that belong to no call.
    asking: Asking,
    pub(super) held: Held,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests that can be cancelled, by their id.
    in_flight: HashMap<Id, oneshot::Sender<()>>,
    /// Calls that are no tasks, by the id that their questions carry.
    calls: HashMap<TaskId, mpsc::UnboundedSender<(AskKey, Answer)>>,
    /// Streams on which somebody waits for the outcome of a task.
    waits: BTreeMap<TaskId, Vec<StreamId>>,
    /// Tasks that this session hears of, and what its client was told of each last.
    shown: BTreeMap<TaskId, Option<Shown>>,
    /// Whether the client has asked for a task.
    uses_tasks: bool,
    /// Questions of tasks, and the stream on which they travelled last.
    questions: BTreeMap<(TaskId, AskKey), Asked>,
}

struct Asked {
    line: Arc<str>,
    sent_on: Option<StreamId>,
}

/// That somebody waits for a task on a stream.
pub(crate) struct Waits<'a> {
    session: &'a Session,
    task: TaskId,
    stream: StreamId,
}

/// Answers to the questions of a call that is no task.
pub(crate) struct Answers<'a> {
    session: &'a Session,
    call: TaskId,
    told: mpsc::UnboundedReceiver<(AskKey, Answer)>,
}

impl Answers<'_> {
    /// The next answer.
    pub(crate) async fn next(&mut self) -> Option<(AskKey, Answer)> {
        self.told.recv().await
    }
}

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        self.session.state().calls.remove(&self.call);
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.session.wait_ends(self.task, self.stream);
    }
}

impl SessionId {
    /// The session of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// A name that nobody has.
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
    /// A session of `owner` in which nothing was said yet.
    pub fn new(front: Arc<Front>, id: SessionId, owner: Owner) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            id,
            owner,
            front,
            board: Board::default(),
            this: this.clone(),
            client: OnceLock::new(),
            about: OnceCell::new(),
            asking: Asking::default(),
            held: Held::default(),
            state: Mutex::default(),
        })
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::Of(self.owner.clone())
    }

    /// The client, once it has introduced itself.
    pub(crate) fn client(&self) -> Option<&Arc<Client>> {
        self.client.get()
    }

    /// The same as it is kept with the session.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.client().map(|client| client.peer())
    }

    /// The client that said this of itself, as it can be reached in this session.
    pub(crate) fn as_client(&self, peer: Peer) -> Arc<Client> {
        let (session, owner) = (self.id.clone(), self.owner.clone());
        Arc::new(Client::new(session, owner, peer, self.this.clone()))
    }

    /// Takes note of who the client is, and of what the service said to it. The first introduction counts.
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

    /// What the service has said of itself, if it was asked.
    pub(super) fn said(&self) -> Option<&Introduction> {
        self.about.get()
    }

    /// Takes note that the client knows how to use tasks.
    pub(super) fn has_used_tasks(&self) {
        self.state().uses_tasks = true;
    }

    /// Whether the client knows how to use tasks: it says so, or it has asked for one.
    pub(super) fn uses_tasks(&self, client: &Client) -> bool {
        let declared =
            object::find(client.capabilities(), &["tasks"]).is_some_and(RawRef::is_object);
        client.peer().has_tasks() && (declared || self.state().uses_tasks)
    }

    /// Whether the client wants log messages of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        level >= self.held.level().unwrap_or(UNASKED)
    }

    /// Registers a request that can be cancelled; resolves the receiver when it is.
    pub(crate) fn begin(&self, request: &Id) -> oneshot::Receiver<()> {
        let (cancel, cancelled) = oneshot::channel();
        self.state().in_flight.insert(request.clone(), cancel);
        cancelled
    }

    pub(crate) fn done(&self, request: &Id) {
        self.state().in_flight.remove(request);
    }

    /// Cancels a request that is in flight. Unknown and finished ones are ignored (V1-CANC-4).
    pub(crate) fn cancel(&self, request: &Id) {
        let found = self.state().in_flight.remove(request);
        if let Some(cancel) = found {
            let _ = cancel.send(());
        }
    }

    /// Cancels every request that is in flight: the session has ended.
    pub(crate) fn cancel_all(&self) {
        let found = std::mem::take(&mut self.state().in_flight);
        for cancel in found.into_values() {
            let _ = cancel.send(());
        }
    }

    /// Registers a call that is no task, as long as what is returned lives: answers to its questions arrive
    /// there.
    pub(crate) fn expect_answers(&self, call: TaskId) -> Answers<'_> {
        let (tell, told) = mpsc::unbounded_channel();
        self.state().calls.insert(call, tell);
        Answers {
            session: self,
            call,
            told,
        }
    }

    /// Hands an answer to a question that belongs to no call; gives it back if there is none of that id.
    pub(crate) fn answer_outside(&self, id: &Id, answer: Answer) -> Option<Answer> {
        self.asking.answer(id, answer)
    }

    /// Hands an answer to a call that is no task; gives it back if there is none of that id.
    pub(crate) fn answer_call(
        &self,
        call: TaskId,
        key: AskKey,
        answer: Answer,
    ) -> Option<(AskKey, Answer)> {
        match self.state().calls.get(&call) {
            Some(tell) => {
                let _ = tell.send((key, answer));
                None
            }
            None => Some((key, answer)),
        }
    }

    /// Somebody waits for the outcome of `task` on `stream`, as long as what is returned lives: its questions
    /// can travel there (BR-IN-2).
    pub(crate) fn wait_on(&self, task: TaskId, stream: StreamId) -> Waits<'_> {
        self.state().waits.entry(task).or_default().push(stream);
        self.deliver(|of| of == task);
        Waits {
            session: self,
            task,
            stream,
        }
    }

    fn wait_ends(&self, task: TaskId, stream: StreamId) {
        let mut state = self.state();
        if let Some(streams) = state.waits.get_mut(&task) {
            streams.retain(|found| *found != stream);
            if streams.is_empty() {
                state.waits.remove(&task);
            }
        }
    }

    /// A general stream is there: whatever waits for a stream can travel on it. Open tasks that nobody hears
    /// of, from an earlier life of the server or of the client, are this session's from now on.
    pub(crate) async fn listens(self: &Arc<Self>) {
        self.asking.listens();
        let mut cursor = None;
        while let Ok(page) = self
            .front
            .engine
            .page(&self.owner, cursor.as_deref(), 100)
            .await
        {
            for task in page.tasks.iter().filter(|task| task.ending().is_none()) {
                self.front.follow(self, task.id());
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        self.deliver(|_| true);
    }

    /// Puts a question, or leaves it if it was put before.
    pub(crate) fn put_question(
        &self,
        task: TaskId,
        key: AskKey,
        line: impl FnOnce() -> Option<String>,
    ) {
        {
            let mut state = self.state();
            let place = (task, key);
            if state.questions.contains_key(&place) {
                return;
            }
            let Some(line) = line() else { return };
            state.questions.insert(
                place,
                Asked {
                    line: line.into(),
                    sent_on: None,
                },
            );
        }
        self.deliver(|of| of == task);
    }

    /// Keeps only those questions of a task that are still open.
    pub(crate) fn keep_questions(&self, task: TaskId, open: impl Fn(&AskKey) -> bool) {
        self.state()
            .questions
            .retain(|(of, key), _| *of != task || open(key));
    }

    /// The session hears of `task` from now on; its client knows it as `known`.
    pub(crate) fn note_shown(&self, task: TaskId, known: Option<Shown>) {
        self.state().shown.insert(task, known);
    }

    pub(crate) fn forget_shown(&self, task: TaskId) {
        self.state().shown.remove(&task);
    }

    /// Whether `now` is news of a task that the session hears of. It is none the second time, and nothing is
    /// news after the end (V1-LIFE-10).
    pub(crate) fn is_news(&self, task: TaskId, now: Shown) -> bool {
        let mut state = self.state();
        let Some(known) = state.shown.get_mut(&task) else {
            return false;
        };
        let over = known
            .as_ref()
            .is_some_and(|(status, _)| status.is_terminal());
        let news = !over && known.as_ref() != Some(&now);
        if news {
            *known = Some(now);
        }
        news
    }

    /// Whether the client was told that a task has ended.
    pub(crate) fn is_over(&self, task: TaskId) -> bool {
        let state = self.state();
        let known = state.shown.get(&task).and_then(Option::as_ref);
        known.is_some_and(|(status, _)| status.is_terminal())
    }

    /// Whether anything can be told to the client now.
    pub(crate) fn is_reachable(&self) -> bool {
        let waits: Vec<_> = self.state().waits.values().flatten().copied().collect();
        self.board.general().is_some() || waits.into_iter().any(|stream| self.board.is_live(stream))
    }

    /// The stream for news of a task: the general one, else one on which somebody waits for it (BD-11), else the
    /// general one that broke, whose client may come back for what it missed (S2-62).
    pub(crate) fn stream_for_news(&self, task: TaskId) -> Option<StreamId> {
        self.board
            .general()
            .or_else(|| self.waiting_stream(&self.state(), task))
            .or_else(|| self.board.last_general())
    }

    /// Sends questions that are on no living stream: on one where somebody waits for the task, else on a
    /// general one, else later (A1-4, BD-16). A stream that broke before the answer came does not count
    /// (BD-17).
    fn deliver(&self, of: impl Fn(TaskId) -> bool) {
        let mut state = self.state();
        let general = self.board.general();
        let targets: Vec<_> = state
            .questions
            .iter()
            .filter(|((task, _), asked)| {
                of(*task)
                    && !asked
                        .sent_on
                        .is_some_and(|stream| self.board.is_live(stream))
            })
            .filter_map(|((task, key), _)| {
                let stream = self.waiting_stream(&state, *task).or(general)?;
                Some(((*task, key.clone()), stream))
            })
            .collect();
        for (place, stream) in targets {
            if let Some(asked) = state.questions.get_mut(&place) {
                asked.sent_on = Some(stream);
                self.board.send(stream, asked.line.clone());
            }
        }
    }

    fn waiting_stream(&self, state: &State, task: TaskId) -> Option<StreamId> {
        let streams = state.waits.get(&task)?;
        streams
            .iter()
            .rev()
            .copied()
            .find(|stream| self.board.is_live(*stream))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every critical section is a few map operations that do not panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox for Session {
    /// Tells it on a general stream; without one, nobody listens.
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
        self.asking.listening()
    }

    fn ask(&self, kind: AskKind, params: Option<&Raw>) -> Option<Put> {
        self.asking.put(&self.board, kind, params)
    }

    fn take_back(&self, question: &Id) {
        self.asking.take_back(&self.board, question);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.front.leave(&self.id, &self.this);
    }
}

/// From which level on messages are sent to a client that has not said what it wants.
const UNASKED: Level = Level::Info;

/// How many random bytes a session id stands for: 128 bits cannot be guessed.
const ID_BYTES: usize = 16;
