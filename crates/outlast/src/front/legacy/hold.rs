//! Calls whose caller takes no task and waits: stored when they take long, with a ticket for a caller that waits no longer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{Event, NewCall, Progress, Promotion, RunningCall};
use outlast_engine::store::Snapshot;
use outlast_engine::{Task, TaskId};
use outlast_wire::envelope::{Id, write};
use outlast_wire::{Raw, RawRef, notice};
use tokio::time::Instant;

use super::call::{Plainly, delivered};
use crate::front::errors::to_wire;
use crate::front::follow::{progress_params, question_id};
use crate::front::holding::Key;
use crate::front::tickets::{self, Helper, Wish};
use crate::front::{Client, Delivery, Holding, Reply, ResponseStream, Session, Stopped};
use crate::sleep::sleep_until;

/// Who waits for a call, and how long.
pub(super) struct Hold<'a> {
    pub(super) stream: &'a ResponseStream,
    pub(super) token: Option<Id>,
    /// Questions that travelled on the stream already.
    asked: BTreeSet<String>,
    /// How far the call has come, as far as it was told.
    said: f64,
    until: Option<Instant>,
    /// How often something must be heard.
    beat: Option<Duration>,
}

impl Session {
    /// How calls of the client are held; `None` if the service does not say.
    pub(super) fn holding(&self, client: &Client) -> Option<Holding> {
        let holding = self.front.service.holding(client)?;
        Some(match self.uses_tasks(client) {
            true => Holding::ENDLESS,
            false => holding,
        })
    }

    /// Runs a call for a caller that waits.
    pub(super) async fn hold(
        self: &Arc<Self>,
        call: NewCall,
        grace: Delivery,
        holding: Holding,
        (stream, token): (&ResponseStream, Option<Id>),
        stopped: &Stopped,
    ) -> Reply {
        let (limit, beat) = holding.terms(token.is_some());
        let begun = Instant::now();
        let mut hold = Hold {
            stream,
            token,
            asked: BTreeSet::new(),
            said: 0.0,
            until: limit.map(|limit| begun + limit),
            beat,
        };
        let key = Key::of(&self.owner, &call.origin);
        let held = key.as_ref().and_then(|key| self.front.held.find(key));
        if let (Some(key), Some(task)) = (&key, held) {
            match self.front.engine.get(&self.scope(), task).await {
                Ok(Snapshot::Open(_)) => return self.wait_for(task, hold).await,
                _ => self.front.held.remove(key, task),
            }
        }
        let running = match self.front.engine.start(call) {
            Ok(running) => running,
            Err(error) => return Reply::from(to_wire(&error)),
        };
        let grace = match grace {
            Delivery::Within(grace) => grace,
            Delivery::Always | Delivery::OnceAnswered => Delivery::GRACE,
        };
        let running = match self
            .run_plainly(running, &mut hold, Some(begun + grace))
            .await
        {
            Plainly::Replied(reply) => return reply,
            Plainly::Runs(running) => running,
        };
        let task = match self.store(running, &mut hold).await {
            Ok(task) => task,
            Err(reply) => return reply,
        };
        if let Some(key) = key.clone() {
            self.front.held.add(key, task);
        }
        let guard = Guard {
            session: self.clone(),
            task,
            stopped: stopped.clone(),
        };
        let reply = self.wait_for(task, hold).await;
        drop(guard);
        if let Some(key) = &key
            && !matches!(
                self.front.engine.get(&self.scope(), task).await,
                Ok(Snapshot::Open(_))
            )
        {
            self.front.held.remove(key, task);
        }
        reply
    }

    /// Makes a call a task whose caller still waits; `Err` if it is answered already. Where the store refuses, the call
    /// goes on and is answered when it has ended.
    async fn store(
        self: &Arc<Self>,
        running: Box<RunningCall>,
        hold: &mut Hold<'_>,
    ) -> Result<TaskId, Reply> {
        match running.promote().await {
            Ok(Promotion::Stored(task)) => {
                // Nobody else is asked its questions.
                self.front.claim_follower(task.id, self);
                Ok(task.id)
            }
            Ok(Promotion::Finished(outcome)) => Err(delivered(outcome)),
            Err((running, error)) => {
                tracing::warn!(call = %running.id(), %error, "a held call was not stored");
                match self.run_plainly(*running, hold, None).await {
                    Plainly::Replied(reply) => Err(reply),
                    Plainly::Runs(_) => Err(Reply::Nothing),
                }
            }
        }
    }

    /// Waits for a task: its outcome, or a ticket when the time is over.
    async fn wait_for(self: &Arc<Self>, task: TaskId, mut hold: Hold<'_>) -> Reply {
        let (engine, scope) = (&self.front.engine, self.scope());
        let mut watch = match engine.watch(&scope, task).await {
            Ok(watch) => watch,
            Err(error) => return Reply::from(to_wire(&error)),
        };
        if let Snapshot::Open(task) = &watch.first {
            self.ask_on_stream(task, &mut hold);
        }
        let mut settled = std::pin::pin!(engine.wait(&scope, task));
        let mut watched = true;
        loop {
            let beat = hold.beat.map(|every| Instant::now() + every);
            tokio::select! {
                biased;
                event = watch.next(), if watched => match event {
                    Some(Event::Progress(progress)) => self.progress_on_stream(&mut hold, &progress),
                    Some(Event::Stored(task)) => self.ask_on_stream(&task, &mut hold),
                    Some(Event::Log(log)) => {
                        if let Some(line) = self.log_line(&log, None) {
                            hold.stream.send(line);
                        }
                    }
                    Some(Event::Plain(_)) => {}
                    None => watched = false,
                },
                settled = &mut settled => {
                    self.front.drop_follower(task, &Arc::downgrade(self));
                    return tickets::settled(task, settled);
                }
                () = sleep_until(beat) => {
                    // So little that whatever the work says next is more.
                    let done = hold.said + STEP;
                    let alive = Progress { done, total: None, message: None };
                    self.progress_on_stream(&mut hold, &alive);
                }
                () = sleep_until(hold.until) => {
                    self.front.drop_follower(task, &Arc::downgrade(self));
                    // Its questions find their way from now on as those of any task.
                    self.front.follow(self, task);
                    return self.front.ticket(&scope, task).await;
                }
            }
        }
    }

    /// Puts the open questions of a task on the stream where somebody waits for it.
    fn ask_on_stream(&self, task: &Task, hold: &mut Hold<'_>) {
        for ask in task.outstanding().into_iter().flat_map(|all| all.views()) {
            if hold.asked.insert(ask.key.to_owned()) {
                let params = ask.params.map(Raw::borrow);
                let line = write::request(&question_id(task.id, ask.key), ask.method, params);
                hold.stream.send(line);
            }
        }
    }

    pub(super) fn progress_on_stream(&self, hold: &mut Hold<'_>, progress: &Progress) {
        hold.said = progress.done;
        let params = hold.token.as_ref();
        if let Some(params) = params.and_then(|token| progress_params(token, progress, None)) {
            let line = write::notification(notice::PROGRESS, Some(params.borrow()));
            hold.stream.send(line);
        }
    }

    /// Answers a helper tool.
    pub(super) async fn help(
        self: &Arc<Self>,
        helper: Helper,
        params: RawRef<'_>,
        holding: Holding,
        (stream, token): (&ResponseStream, Option<Id>),
    ) -> Reply {
        let wish = match Wish::read(params) {
            Ok(wish) => wish,
            Err(error) => return Reply::from(error),
        };
        if helper == Helper::Status {
            return self.front.status_of(&self.scope(), wish.task).await;
        }
        let task = match wish.needed() {
            Ok(task) => task,
            Err(error) => return Reply::from(error),
        };
        match helper {
            Helper::Cancel => self.front.stop(&self.scope(), task).await,
            _ => {
                let (limit, beat) = holding.terms(token.is_some());
                let time = wish.time.into_iter().chain(limit).min();
                // A session that followed it takes its questions back.
                self.front.drop_follower(task, &Arc::downgrade(self));
                let hold = Hold {
                    stream,
                    token,
                    asked: BTreeSet::new(),
                    said: 0.0,
                    until: time.map(|time| Instant::now() + time),
                    beat,
                };
                self.wait_for(task, hold).await
            }
        }
    }
}

impl<'a> Hold<'a> {
    /// Somebody who waits as long as it takes.
    pub(super) fn plainly(stream: &'a ResponseStream, token: Option<Id>) -> Self {
        Self {
            stream,
            token,
            asked: BTreeSet::new(),
            said: 0.0,
            until: None,
            beat: None,
        }
    }

    /// Takes note that a question travels; false if it did before.
    pub(super) fn asks(&mut self, key: &str) -> bool {
        self.asked.insert(key.to_owned())
    }

    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }
}

/// Stops the task of a call that its caller cancelled (BR-CAN-9).
struct Guard {
    session: Arc<Session>,
    task: TaskId,
    stopped: Stopped,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.stopped.is_so() {
            return;
        }
        let (session, task) = (self.session.clone(), self.task);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let asked = session
                    .front
                    .engine
                    .request_cancel(&session.scope(), task)
                    .await;
                if let Err(error) = asked {
                    tracing::info!(%task, %error, "a call that was cancelled goes on");
                }
            });
        }
    }
}

/// By how much progress grows that only says that the call lives.
const STEP: f64 = 1e-6;
