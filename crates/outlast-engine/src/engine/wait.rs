//! Waiting for the end of a task and watching it, by event. Nothing here polls.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::event_queue::Mailbox;
use super::subscribers::Place;
use super::{Engine, EngineError, Event, Inner, Phase, Settled};
use crate::id::{Scope, TaskId};
use crate::store::{Committed, Snapshot};
use crate::task::Task;

/// News of one task, as long as it lives.
pub struct Watch {
    /// How the task stood when the watch began.
    pub first: Snapshot,
    events: Mailbox,
    inner: Arc<Inner>,
    _place: Option<Place>,
}

impl Watch {
    /// The next event; `None` when the task has ended, is gone, or its engine is.
    ///
    /// One who is slow misses steps in between: look at the task once after the last event.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.events.next() => event,
            () = self.inner.reached(Phase::Closed) => None,
        }
    }
}

/// A task as a waiter finds it.
pub enum Awaited {
    /// It has ended.
    Ended(Settled),
    /// It has not ended yet.
    Open(OutcomeWait),
}

/// Waits for the end of a task that was open when this was made.
pub struct OutcomeWait {
    engine: Engine,
    scope: Scope,
    id: TaskId,
    end: (Place, oneshot::Receiver<Option<Settled>>),
}

impl OutcomeWait {
    /// Resolves when the task has ended or is gone, however long that takes.
    pub async fn settled(self) -> Result<Settled, EngineError> {
        let Self {
            engine,
            scope,
            id,
            mut end,
        } = self;
        loop {
            // A waiter that registers after the engine has closed sees the phase here; those before it lose
            // their place.
            if engine.inner.phase() == Phase::Closed {
                return Err(EngineError::Closing);
            }
            let (_place, told) = end;
            if let Ok(Some(settled)) = told.await {
                return Ok(settled);
            }
            // The event carries no outcome: the task ended elsewhere, expired, or the engine closes.
            end = engine.inner.topics.end_of(id);
            if let Some(settled) = engine.outcome(&scope, id).await? {
                return Ok(settled);
            }
        }
    }
}

impl Engine {
    /// Waits until the task has ended, however long that takes, and returns its outcome.
    pub async fn wait(&self, scope: &Scope, id: TaskId) -> Result<Settled, EngineError> {
        match self.awaited(scope, id).await? {
            Awaited::Ended(settled) => Ok(settled),
            Awaited::Open(wait) => wait.settled().await,
        }
    }

    /// The outcome of a task, or the means to wait for it, by one look-up.
    pub async fn awaited(&self, scope: &Scope, id: TaskId) -> Result<Awaited, EngineError> {
        // Most tasks that do not run here have ended, and then there is nothing to register for.
        let runs_here = self.inner.calls.contains(id);
        if !runs_here && let Some(settled) = self.outcome(scope, id).await? {
            return Ok(Awaited::Ended(settled));
        }
        // Registered before the look-up, so that no end falls between the two (P6).
        let end = self.inner.topics.end_of(id);
        Ok(match self.outcome(scope, id).await? {
            Some(settled) => Awaited::Ended(settled),
            None => Awaited::Open(OutcomeWait {
                engine: self.clone(),
                scope: scope.clone(),
                id,
                end,
            }),
        })
    }

    /// Watches a task from now on.
    pub async fn watch(&self, scope: &Scope, id: TaskId) -> Result<Watch, EngineError> {
        let (place, events) = self.inner.topics.everything_of(id);
        let first = self.get(scope, id).await?;
        events.has_seen(first.revision());
        // Of a task that has ended nothing more will be told.
        let place = first.ending().is_none().then_some(place);
        Ok(Watch {
            first,
            events,
            inner: self.inner.clone(),
            _place: place,
        })
    }
}

impl Inner {
    /// A watch of `task` that was begun before it.
    pub(super) fn watch_from(
        self: &Arc<Self>,
        task: Committed<Task>,
        (place, events): (Place, Mailbox),
    ) -> Watch {
        events.has_seen(task.revision);
        Watch {
            first: task.into(),
            events,
            inner: self.clone(),
            _place: Some(place),
        }
    }
}
