//! Calls that are no tasks yet: run at once, kept only if somebody needs a handle.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::call_state::{Cell, Stage};
use super::run::Begin;
use super::event_queue::Mailbox;
use super::subscribers::Place;
use super::{Engine, EngineError, Event, Inner, NewCall, Phase, Progress, audit};
use crate::input::Answer;
use crate::id::{AskKey, TaskId};
use crate::outcome::Outcome;
use crate::runtime::spawn;
use crate::store::{Committed, Insert, Inserted, Reason, RecordWrite, StoreError};
use crate::task::Task;
use crate::transition::Command;

/// A call that runs and is no task. Dropping it stops the work.
pub struct RunningCall {
    inner: Arc<Inner>,
    cell: Arc<Cell>,
    outcome: oneshot::Receiver<Outcome>,
    events: Mailbox,
    records: Vec<RecordWrite>,
    _place: Place,
}

/// What a call became that was to become a task.
#[derive(Debug)]
pub enum Promotion {
    /// A task.
    Stored(Committed<Task>),
    /// Nothing: it ended before it was stored, and nothing is kept.
    Finished(Outcome),
}

impl Engine {
    /// Runs a call without storing anything.
    pub fn start(&self, call: NewCall) -> Result<RunningCall, EngineError> {
        let mut call = call;
        let records = std::mem::take(&mut call.records);
        let parts = call.parts.take();
        let (task, runner) = self.inner.admit(call)?;
        let (tell, outcome) = oneshot::channel();
        let id = task.id;
        let (place, events) = self.inner.topics.everything_of(id);
        let stage = Stage::Plain(task.clone(), Some(tell));
        let cell = Arc::new(Cell::new(&task, stage, parts));
        self.inner.calls.add(cell.clone());
        // A shutdown waits for the calls that it finds. One that began since `admit` may have found none.
        if let Err(closing) = self.inner.check_open() {
            self.inner.calls.take(cell.id, cell.attempt);
            return Err(closing);
        }
        let inner = self.inner.clone();
        spawn(inner.clone().drive(cell.clone(), runner, Begin::Run));
        Ok(RunningCall {
            inner,
            cell,
            outcome,
            events,
            records,
            _place: place,
        })
    }
}

impl RunningCall {
    /// The id that the call would have as a task.
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    /// Waits for the end.
    pub async fn outcome(&mut self) -> Outcome {
        // The sender goes away unused only when the call is stopped.
        (&mut self.outcome).await.unwrap_or(Outcome::Cancelled)
    }

    /// The next thing that happens; `None` when the call is over.
    pub async fn event(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.events.next() => event,
            () = self.inner.reached(Phase::Closed) => None,
        }
    }

    /// The newest progress.
    pub fn progress(&self) -> Option<Progress> {
        self.cell.local().progress.clone()
    }

    /// The call as it stands, unless it is over.
    pub fn state(&self) -> Option<Task> {
        match &self.cell.local().stage {
            Stage::Plain(task, _) | Stage::Promoting(task, ..) => Some(Task::clone(task)),
            Stage::Stored(task) => Some(Task::clone(task)),
            Stage::Storing | Stage::Over => None,
        }
    }

    /// Answers questions of the call. Answers to questions that are not outstanding are ignored.
    pub async fn answer(&self, answers: BTreeMap<AskKey, Answer>) -> Result<(), EngineError> {
        use crate::transition::Refused;
        match self
            .inner
            .command(&self.cell, Command::Answer(answers))
            .await
        {
            Err(EngineError::Refused(Refused::NotOutstanding | Refused::AlreadyEnded)) => Ok(()),
            other => other,
        }
    }

    /// Asks the work to stop.
    pub fn request_cancel(&self) {
        self.cell.stop.ask();
    }

    /// Makes the call a task: stored when this resolves, unless it ended first.
    ///
    /// If the store refuses, the call goes on as it was and is handed back.
    pub async fn promote(self) -> Result<Promotion, (Box<Self>, EngineError)> {
        let (tell, told) = oneshot::channel();
        spawn(async move {
            if tell.is_closed() {
                // The caller is gone before anything was stored: dropping the call stops it.
                return;
            }
            if tell.send(self.promote_now().await).is_err() {
                // Stored already: the task is kept, its owner may find it.
                tracing::info!("a caller went away while its call became a task");
            }
        });
        match told.await {
            Ok(result) => result,
            // The runtime shuts down, and nobody polls this again.
            Err(_) => std::future::pending().await,
        }
    }

    async fn promote_now(mut self) -> Result<Promotion, (Box<Self>, EngineError)> {
        if self.cell.local().unsure {
            let reason = Reason::new("an earlier try to store the call is being undone");
            return Err((Box::new(self), StoreError::Unavailable(reason).into()));
        }
        let task = {
            let mut local = self.cell.local();
            match std::mem::replace(&mut local.stage, Stage::Over) {
                Stage::Plain(task, tell) => {
                    let copy = Arc::new(Task::clone(&task));
                    local.stage = Stage::Promoting(task, tell, None);
                    Some(copy)
                }
                other => {
                    local.stage = other;
                    None
                }
            }
        };
        let Some(task) = task else {
            return Ok(Promotion::Finished(self.outcome().await));
        };
        let quota = self.inner.policy.quota;
        let records = std::mem::take(&mut self.records);
        let told = self.inner.store.insert(Insert {
            task,
            quota,
            records: records.clone(),
        });
        let inserted = self.inner.inserted(self.cell.id, told).await;
        let kept = match inserted {
            Ok(Inserted::New(task)) => Ok(task),
            Ok(Inserted::Known(_)) => Err(EngineError::KeyConflict(Arc::from(""))),
            Err(error) => {
                if error.is_passing() {
                    self.undo();
                }
                Err(error.into())
            }
        };
        self.decide(kept, records).await
    }

    /// Takes the task back that the store may have made without saying so.
    fn undo(&self) {
        self.cell.local().unsure = true;
        let (inner, cell) = (self.inner.clone(), self.cell.clone());
        spawn(async move {
            inner.disown(cell.id).await;
            cell.local().unsure = false;
        });
    }

    /// Settles how the call goes on after the store has spoken.
    async fn decide(
        mut self,
        kept: Result<Committed<Task>, EngineError>,
        records: Vec<RecordWrite>,
    ) -> Result<Promotion, (Box<Self>, EngineError)> {
        let finished = {
            let mut local = self.cell.local();
            let stage = std::mem::replace(&mut local.stage, Stage::Over);
            match (stage, &kept) {
                (Stage::Promoting(_, _, Some(outcome)), _) => Some(outcome),
                (Stage::Promoting(task, tell, None), Err(_)) => {
                    local.stage = Stage::Plain(task, tell);
                    None
                }
                (Stage::Promoting(_, _, None), Ok(task)) => {
                    local.stage = Stage::Stored(task.clone());
                    None
                }
                // Stopped meanwhile.
                (_, _) => Some(Outcome::Cancelled),
            }
        };
        self.cell.decided.notify_waiters();
        match (finished, kept) {
            (Some(outcome), kept) => {
                self.inner.calls.take(self.cell.id, self.cell.attempt);
                if kept.is_ok() && self.inner.take_back(self.cell.id).await.is_err() {
                    let (inner, id) = (self.inner.clone(), self.cell.id);
                    spawn(async move { inner.disown(id).await });
                }
                Ok(Promotion::Finished(outcome))
            }
            (None, Ok(task)) => {
                self.inner.meter.created();
                audit::created(&task);
                self.inner.alarm.at(task.due());
                Ok(Promotion::Stored(task))
            }
            (None, Err(error)) => {
                self.records = records;
                Err((Box::new(self), error))
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let plain = matches!(self.cell.local().stage, Stage::Plain(..));
        if plain {
            self.inner.stop(self.cell.id);
        }
    }
}
