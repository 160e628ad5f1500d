//! Events of the tasks that a session follows: status, progress, log messages, input requests.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Weak};

use outlast_engine::engine::{Event, Follower, Progress, Watch};
use outlast_engine::store::Snapshot;
use outlast_engine::{InputKey, Owner, Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::log::{self, Log};
use outlast_wire::{Raw, RawRef, Status, meta, notice, v1};
use parking_lot::{Mutex, MutexGuard};

use super::Session;
use crate::server::McpServer;

impl McpServer {
    /// Sends the events of a task to `session` until the task ends, unless another session follows
    /// it.
    pub(crate) fn follow(self: &Arc<Self>, session: &Arc<Session>, task: TaskId) {
        let (engine, scope) = (self.engine.clone(), session.scope());
        let watch = async move { engine.watch(&scope, task).await.ok() };
        if let Some(following) = self.clone().follow_with(session, task, None, watch) {
            tokio::spawn(following);
        }
    }

    /// The same for a task that `session` is about to create. The create result already says
    /// `working`.
    pub(crate) fn follower(self: &Arc<Self>, session: &Arc<Session>) -> Follower {
        let (server, session) = (self.clone(), session.clone());
        Box::new(move |watch| {
            let task = watch.first.id();
            session.record_created(task);
            let text = task.text();
            let message = watch.first.view(&text, server.engine.now()).message;
            let sent = Some((Status::Working, message.map(Arc::from)));
            match server.follow_with(&session, task, sent, ready(Some(watch))) {
                Some(following) => Box::pin(following),
                None => Box::pin(ready(())),
            }
        })
    }

    /// `sent` is the status that the client already has.
    fn follow_with<W>(
        self: Arc<Self>,
        session: &Arc<Session>,
        task: TaskId,
        sent: Option<SentStatus>,
        watch: W,
    ) -> Option<impl Future<Output = ()> + Send + use<W>>
    where
        W: Future<Output = Option<Watch>> + Send,
    {
        if !self.claim_follower(task, session) {
            return None;
        }
        session.followed_tasks.insert(task, sent);
        let session = Arc::downgrade(session);
        Some(async move {
            if let Some(watch) = watch.await {
                self.forward_events(task, &session, watch).await;
            }
            if let Some(session) = session.upgrade() {
                if session.followed_tasks.has_ended(task) {
                    session.created_tasks.remove(task);
                }
                session.followed_tasks.remove(task);
            }
            self.drop_follower(task, &session);
        })
    }

    /// Forwards all events of a task to `session`, as long as both exist.
    async fn forward_events(&self, task: TaskId, session: &Weak<Session>, mut watch: Watch) {
        let token = match &watch.first {
            Snapshot::Open(task) => task.origin.progress_token.as_ref(),
            Snapshot::Ended(_) => None,
        };
        let token = token.and_then(|token| Id::read(token.borrow()).ok());
        if let Some(session) = session.upgrade() {
            session.publish_status(&watch.first);
        }
        while let Some(event) = watch.next().await {
            // The session ended, or another session of the owner follows the task now.
            if !self.is_follower(task, session) {
                return;
            }
            let Some(session) = session.upgrade() else {
                return;
            };
            match event {
                Event::Stored(task) => session.publish_status(&task.into()),
                Event::Progress(progress) => {
                    // V1-PROG-2.
                    if let Some(token) = &token
                        && !session.followed_tasks.has_ended(task)
                    {
                        session.send_progress(task, token, &progress);
                    }
                }
                Event::Log(log) => {
                    if !session.followed_tasks.has_ended(task) {
                        session.send_log(task, &log);
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
    /// Records a task that was created in this session. The tasks of an anonymous session are found
    /// by its owner.
    fn record_created(&self, task: TaskId) {
        if !matches!(self.owner, Owner::Session(_)) {
            self.created_tasks.add(task);
            self.save_in_background();
        }
    }

    /// Sends the status of a followed task, if it is new (V1-NOTIF-1, V1-NOTIF-3), and its input
    /// requests.
    pub(crate) fn publish_status(&self, task: &Snapshot) {
        if let Snapshot::Open(task) = task {
            self.send_input_requests(task);
        }
        let text = task.id().text();
        let view = task.view(&text, self.server.engine.now());
        let now = (v1::status(view.phase), view.message.map(Arc::from));
        if self.followed_tasks.record_status(task.id(), now) {
            self.send_event(task.id(), || {
                let params = v1::task(&view);
                write::notification(v1::method::STATUS, Some(params.borrow()))
            });
        }
    }

    /// Sends the open input requests of a task, and removes those that are no longer open.
    fn send_input_requests(&self, task: &Task) {
        let outstanding = task.outstanding();
        self.input_requests.retain(task.id, |key| {
            outstanding.is_some_and(|all| all.get(key).is_some())
        });
        for ask in outstanding.into_iter().flat_map(|all| all.views()) {
            let key = InputKey::new(ask.key);
            self.input_requests.send(&self.streams, task.id, key, || {
                input_request_line(task.id, ask.key, ask.method, ask.params)
            });
        }
    }

    /// Sends an event of a task. The line is built only if there is a stream.
    fn send_event(&self, task: TaskId, line: impl FnOnce() -> String) {
        if let Some(stream) = self.stream_for_events(task) {
            self.streams.send(stream, line());
        }
    }

    /// Sends progress under the token of the request that created the task (V1-PROG-1, V1-PROG-4).
    pub(crate) fn send_progress(&self, task: TaskId, token: &Id, progress: &Progress) {
        if let Some(params) = progress_params(token, progress, Some(task)) {
            self.send_event(task, || {
                write::notification(notice::PROGRESS, Some(params.borrow()))
            });
        }
    }

    /// Sends a log message of a task, if the client wants its level (A1-22).
    fn send_log(&self, task: TaskId, log: &Log) {
        if let Some(line) = self.log_line(log, Some(task)) {
            self.send_event(task, || line);
        }
    }

    /// The notification of a log message, if the client wants its level. With a task, it names the
    /// related task.
    pub(crate) fn log_line(&self, log: &Log, task: Option<TaskId>) -> Option<String> {
        if !self.wants_log(log.level) {
            return None;
        }
        let params = with_related_task(log.to_raw(), task)?;
        Some(write::notification(log::MESSAGE, Some(params.borrow())))
    }
}

/// The followed tasks of a session, with the last status that was sent of each.
#[derive(Default)]
pub(super) struct FollowedTasks(Mutex<BTreeMap<TaskId, Option<SentStatus>>>);

/// A status and its message.
type SentStatus = (Status, Option<Arc<str>>);

impl FollowedTasks {
    /// Adds a task whose `sent` status the client already has.
    fn insert(&self, task: TaskId, sent: Option<SentStatus>) {
        self.lock().insert(task, sent);
    }

    fn remove(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    /// Records the status of a followed task; returns whether it must be sent. Nothing is sent
    /// after the end (V1-LIFE-10).
    fn record_status(&self, task: TaskId, now: SentStatus) -> bool {
        let mut tasks = self.lock();
        let Some(sent) = tasks.get_mut(&task) else {
            return false;
        };
        let has_ended = sent
            .as_ref()
            .is_some_and(|(status, _)| status.is_terminal());
        let is_new = !has_ended && sent.as_ref() != Some(&now);
        if is_new {
            *sent = Some(now);
        }
        is_new
    }

    /// Whether the client was sent a terminal status.
    fn has_ended(&self, task: TaskId) -> bool {
        let tasks = self.lock();
        let sent = tasks.get(&task).and_then(Option::as_ref);
        sent.is_some_and(|(status, _)| status.is_terminal())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Option<SentStatus>>> {
        self.0.lock()
    }
}

/// The message of an input request. Its id contains task and key, so that the response is routed
/// after a restart, too (BD-17). It names the related task (V1-INPUT-2).
pub(crate) fn input_request_line(
    task: TaskId,
    key: &str,
    method: &str,
    params: Option<&Raw>,
) -> Option<String> {
    let params = params.map_or("{}", Raw::as_str);
    let params = meta::relate(RawRef::parse(params).ok()?, task.text().as_str()).ok()?;
    Some(write::request(
        &input_request_id(task, key),
        method,
        Some(params.borrow()),
    ))
}

/// The id of the message of an input request.
pub(crate) fn input_request_id(task: TaskId, key: &str) -> Id {
    Id::text(&format!("{task}.{key}"))
}

/// The task and key in the id of an input request; `None` for any other id.
pub(crate) fn parse_input_request_id(id: &Id) -> Option<(TaskId, InputKey)> {
    let text = id.as_text()?;
    let (task, key) = text.split_once('.')?;
    Some((task.parse().ok()?, InputKey::new(key)))
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
    with_related_task(params.to_raw(), task)
}

/// Adds the related task to `params`, if there is one (V1-META-1).
fn with_related_task(params: Raw, task: Option<TaskId>) -> Option<Raw> {
    match task {
        Some(task) => meta::relate(params.borrow(), task.text().as_str()).ok(),
        None => Some(params),
    }
}
