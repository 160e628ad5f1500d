//! What a session hears of the tasks it made: status, progress, questions.

use std::sync::Arc;

use outlast_engine::engine::{Event, Progress, Watch};
use outlast_engine::store::Snapshot;
use outlast_engine::{AskKey, Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::{Raw, RawRef, Status, meta, notice, v1};

use super::{Front, Session};

impl Front {
    /// Lets `session` hear of a task until it ends, unless another session does.
    pub(crate) fn follow(self: &Arc<Self>, session: &Arc<Session>, task: TaskId) {
        if self.claim_follower(task, &session.id) {
            let weak = Arc::downgrade(session);
            let front = self.clone();
            let scope = session.scope();
            tokio::spawn(async move {
                if let Ok(mut watch) = front.engine.watch(&scope, task).await {
                    let mut last = None;
                    if let (Some(session), Snapshot::Open(task)) = (weak.upgrade(), &watch.first) {
                        session.put_questions(task);
                        last = Some(shown(task));
                    }
                    while let Some(event) = next(&mut watch, &weak).await {
                        // The session ended: whoever else the owner has may take over.
                        let Some(session) = weak.upgrade() else {
                            return;
                        };
                        session.hear(&event, &mut last);
                    }
                    if let Some(session) = weak.upgrade() {
                        session.keep_questions(task, |_| false);
                    }
                }
                front.drop_follower(task);
            });
        }
    }
}

impl Session {
    fn hear(&self, event: &Event, last: &mut Option<Shown>) {
        match event {
            Event::Stored(task) => {
                self.put_questions(task);
                let now = shown(task);
                // V1-NOTIF-1: on every change of what is shown.
                if last.as_ref() != Some(&now) {
                    let text = task.id.text();
                    let params = v1::task(&task.view(&text));
                    self.tell(
                        task.id,
                        write::notification(v1::method::STATUS, Some(params.borrow())),
                    );
                    *last = Some(now);
                }
            }
            Event::Progress(_) | Event::Plain(_) => {}
        }
    }

    /// Puts the open questions of a task, and takes those back that are not open any more.
    fn put_questions(&self, task: &Task) {
        let outstanding = task.outstanding();
        self.keep_questions(task.id, |key| {
            outstanding.is_some_and(|all| all.get(key).is_some())
        });
        for ask in outstanding.into_iter().flat_map(|all| all.views()) {
            let key = AskKey::new(ask.key);
            self.put_question(task.id, key, || {
                question(task.id, ask.key, ask.method, ask.params)
            });
        }
    }

    fn tell(&self, task: TaskId, line: String) {
        if let Some(stream) = self.stream_for_news(task) {
            self.board.send(stream, line);
        }
    }

    /// Tells how far a task has come, under the token of the request that made it (V1-PROG-1, V1-PROG-4).
    pub(crate) fn tell_progress(&self, task: TaskId, token: &Id, progress: &Progress) {
        if let Some(params) = progress_params(token, progress, Some(task)) {
            self.tell(
                task,
                write::notification(notice::PROGRESS, Some(params.borrow())),
            );
        }
    }
}

/// What a status notification shows: the word and the message.
type Shown = (Status, Option<Arc<str>>);

fn shown(task: &Task) -> Shown {
    let text = task.id.text();
    (v1::status(task.view(&text).phase), task.message.clone())
}

async fn next(watch: &mut Watch, session: &std::sync::Weak<Session>) -> Option<Event> {
    loop {
        let event = watch.next().await?;
        let Event::Progress(progress) = &event else {
            return Some(event);
        };
        let Some(session) = session.upgrade() else {
            return Some(event);
        };
        if let Snapshot::Open(task) = &watch.first
            && let Some(token) = task.origin.progress_token.as_ref()
            && let Ok(token) = Id::read(token.borrow())
        {
            session.tell_progress(task.id, &token, progress);
        }
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
    let params = params.map_or(EMPTY, Raw::as_str);
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
    let params = params.to_raw();
    match task {
        Some(task) => meta::relate(params.borrow(), task.text().as_str()).ok(),
        None => Some(params),
    }
}

const EMPTY: &str = "{}";
