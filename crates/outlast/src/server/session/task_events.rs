//! Events of the tasks that a session follows: status, progress, log messages, input requests.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Weak};

use outlast_engine::engine::{Event, Follower, Progress, Watch};
use outlast_engine::store::Snapshot;
use outlast_engine::{AskKey, Owner, Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::log::{self, Log};
use outlast_wire::{Raw, RawRef, Status, meta, notice, v1};
use parking_lot::{Mutex, MutexGuard};

use super::Session;
use crate::server::Front;

impl Front {
    /// Lets `session` hear of a task until it ends, unless another session does.
    pub(crate) fn follow(self: &Arc<Self>, session: &Arc<Session>, task: TaskId) {
        let (engine, scope) = (self.engine.clone(), session.scope());
        let watch = async move { engine.watch(&scope, task).await.ok() };
        if let Some(following) = self.clone().follow_by(session, task, None, watch) {
            tokio::spawn(following);
        }
    }

    /// The same for a task that `session` is about to make, from its beginning. The creation itself says that it works.
    pub(crate) fn follower(self: &Arc<Self>, session: &Arc<Session>) -> Follower {
        let (front, session) = (self.clone(), session.clone());
        Box::new(move |watch| {
            let task = watch.first.id();
            session.has_made(task);
            let text = task.text();
            let message = watch.first.view(&text, front.engine.now()).message;
            let known = Some((Status::Working, message.map(Arc::from)));
            match front.follow_by(&session, task, known, ready(Some(watch))) {
                Some(following) => Box::pin(following),
                None => Box::pin(ready(())),
            }
        })
    }

    /// `known` is what the client was told of the task already.
    fn follow_by<W>(
        self: Arc<Self>,
        session: &Arc<Session>,
        task: TaskId,
        known: Option<Shown>,
        watch: W,
    ) -> Option<impl Future<Output = ()> + Send + use<W>>
    where
        W: Future<Output = Option<Watch>> + Send,
    {
        if !self.claim_follower(task, session) {
            return None;
        }
        session.shown.insert(task, known);
        let session = Arc::downgrade(session);
        Some(async move {
            if let Some(watch) = watch.await {
                self.tell_all(task, &session, watch).await;
            }
            if let Some(session) = session.upgrade() {
                if session.shown.is_over(task) {
                    session.made_tasks.remove(task);
                }
                session.shown.remove(task);
            }
            self.drop_follower(task, &session);
        })
    }

    /// Tells `session` all of a task, as long as both live.
    async fn tell_all(&self, task: TaskId, session: &Weak<Session>, mut watch: Watch) {
        let token = match &watch.first {
            Snapshot::Open(task) => task.origin.progress_token.as_ref(),
            Snapshot::Ended(_) => None,
        };
        let token = token.and_then(|token| Id::read(token.borrow()).ok());
        if let Some(session) = session.upgrade() {
            session.hear(&watch.first);
        }
        while let Some(event) = watch.next().await {
            // The session ended, or another one of the owner's took over.
            if !self.is_follower(task, session) {
                return;
            }
            let Some(session) = session.upgrade() else {
                return;
            };
            match event {
                Event::Stored(task) => session.hear(&task.into()),
                Event::Progress(progress) => {
                    // V1-PROG-2.
                    if let Some(token) = &token
                        && !session.shown.is_over(task)
                    {
                        session.tell_progress(task, token, &progress);
                    }
                }
                Event::Log(log) => {
                    if !session.shown.is_over(task) {
                        session.tell_log(task, &log);
                    }
                }
                Event::Plain(_) | Event::RunsAsTask => {}
            }
        }
        if let Some(session) = session.upgrade() {
            session.input_requests.retain(task, |_| false);
        }
    }
}

impl Session {
    /// Records that a task was made in this session. The tasks of a session without a principal are found by its name.
    fn has_made(&self, task: TaskId) {
        if !matches!(self.owner, Owner::Session(_)) {
            self.made_tasks.add(task);
            self.store_soon();
        }
    }

    /// Announces a task that this session follows, if it is news (V1-NOTIF-1, V1-NOTIF-3), and puts its
    /// questions.
    pub(crate) fn hear(&self, task: &Snapshot) {
        if let Snapshot::Open(task) = task {
            self.put_questions(task);
        }
        let text = task.id().text();
        let view = task.view(&text, self.front.engine.now());
        let now = (v1::status(view.phase), view.message.map(Arc::from));
        if self.shown.is_news(task.id(), now) {
            self.tell(task.id(), || {
                let params = v1::task(&view);
                write::notification(v1::method::STATUS, Some(params.borrow()))
            });
        }
    }

    /// Puts the open questions of a task, and takes those back that are not open any more.
    fn put_questions(&self, task: &Task) {
        let outstanding = task.outstanding();
        self.input_requests.retain(task.id, |key| {
            outstanding.is_some_and(|all| all.get(key).is_some())
        });
        for ask in outstanding.into_iter().flat_map(|all| all.views()) {
            let key = AskKey::new(ask.key);
            self.input_requests.put(&self.board, task.id, key, || {
                question(task.id, ask.key, ask.method, ask.params)
            });
        }
    }

    /// Tells something of a task, which is only written if there is a stream that a client reads or may come back to.
    fn tell(&self, task: TaskId, line: impl FnOnce() -> String) {
        if let Some(stream) = self.stream_for_events(task) {
            self.board.send(stream, line());
        }
    }

    /// Tells how far a task has come, under the token of the request that made it (V1-PROG-1, V1-PROG-4).
    pub(crate) fn tell_progress(&self, task: TaskId, token: &Id, progress: &Progress) {
        if let Some(params) = progress_params(token, progress, Some(task)) {
            self.tell(task, || {
                write::notification(notice::PROGRESS, Some(params.borrow()))
            });
        }
    }

    /// Tells what a task has to say, if the client wants to hear it (A1-22).
    fn tell_log(&self, task: TaskId, log: &Log) {
        if let Some(line) = self.log_line(log, Some(task)) {
            self.tell(task, || line);
        }
    }

    /// The notification of a log message, unless the client does not want it. That of a task carries the task.
    pub(crate) fn log_line(&self, log: &Log, task: Option<TaskId>) -> Option<String> {
        if !self.wants(log.level) {
            return None;
        }
        let params = related(log.to_raw(), task)?;
        Some(write::notification(log::MESSAGE, Some(params.borrow())))
    }
}

/// The tasks that a session follows, and what its client knows of each.
#[derive(Default)]
pub(super) struct ShownTasks(Mutex<BTreeMap<TaskId, Option<Shown>>>);

/// What a client knows of a task: its status and its message.
type Shown = (Status, Option<Arc<str>>);

impl ShownTasks {
    /// The session follows `task` from now on; its client knows it as `known`.
    fn insert(&self, task: TaskId, known: Option<Shown>) {
        self.lock().insert(task, known);
    }

    fn remove(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    /// Whether the client does not know `now` of a task that the session follows, which it does from then on. Nothing
    /// is new after the end (V1-LIFE-10).
    fn is_news(&self, task: TaskId, now: Shown) -> bool {
        let mut shown = self.lock();
        let Some(known) = shown.get_mut(&task) else {
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

    /// Whether the client knows that a task has ended.
    fn is_over(&self, task: TaskId) -> bool {
        let shown = self.lock();
        let known = shown.get(&task).and_then(Option::as_ref);
        known.is_some_and(|(status, _)| status.is_terminal())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Option<Shown>>> {
        self.0.lock()
    }
}

/// The request that asks a question. Its id names task and question, so that the answer finds its way after
/// a restart, too (BD-17); a task's question carries the task (V1-INPUT-2).
pub(crate) fn question(
    task: TaskId,
    key: &str,
    method: &str,
    params: Option<&Raw>,
) -> Option<String> {
    let params = params.map_or("{}", Raw::as_str);
    let marked = meta::relate(RawRef::parse(params).ok()?, task.text().as_str()).ok()?;
    Some(write::request(
        &question_id(task, key),
        method,
        Some(marked.borrow()),
    ))
}

/// The id of the request that asks a question.
pub(crate) fn question_id(task: TaskId, key: &str) -> Id {
    Id::text(&format!("{task}.{key}"))
}

/// The question that a response answers, if its id is one of ours.
pub(crate) fn answered(id: &Id) -> Option<(TaskId, AskKey)> {
    let text = id.as_text()?;
    let (task, key) = text.split_once('.')?;
    Some((task.parse().ok()?, AskKey::new(key)))
}

/// The params of a progress notification.
pub(crate) fn progress_params(
    token: &Id,
    progress: &Progress,
    task: Option<TaskId>,
) -> Option<Raw> {
    let params = notice::Progress {
        token: token.clone(),
        progress: progress.done,
        total: progress.total,
        message: progress.message.as_deref().map(Into::into),
    };
    related(params.to_raw(), task)
}

/// `params` marked with their task, if they are a task's (V1-META-1).
fn related(params: Raw, task: Option<TaskId>) -> Option<Raw> {
    match task {
        Some(task) => meta::relate(params.borrow(), task.text().as_str()).ok(),
        None => Some(params),
    }
}
