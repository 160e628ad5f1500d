//! Waiting for the end of a task and watching it, by event. Nothing here polls.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::event_queue::EventReceiver;
use super::subscribers::Subscription;
use super::{EndedTask, Engine, EngineError, Event, Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::store::{Committed, Snapshot};
use crate::task::Task;

/// News of one task, as long as it lives.
pub struct Watch {
    /// How the task stood when the watch began.
    pub first: Snapshot,
    events: EventReceiver,
    inner: Arc<Inner>,
    _subscription: Option<Subscription>,
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
pub enum OutcomeOrWait {
    /// It has ended.
    Ended(EndedTask),
    /// It has not ended yet.
    Open(OutcomeWait),
}

/// Waits for the end of a task that was open when this was made.
pub struct OutcomeWait {
    engine: Engine,
    scope: Scope,
    id: TaskId,
    end: (Subscription, oneshot::Receiver<Option<EndedTask>>),
}

impl OutcomeWait {
    /// Resolves when the task has ended or is gone, however long that takes.
    pub async fn settled(self) -> Result<EndedTask, EngineError> {
        let Self {
            engine,
            scope,
            id,
            mut end,
        } = self;
        loop {
            // A waiter that registers after the engine has closed sees the phase here; those before
            // it lose their place.
            if engine.inner.phase() == Phase::Closed {
                return Err(EngineError::Closing);
            }
            let (_subscription, received) = end;
            if let Ok(Some(ended_task)) = received.await {
                return Ok(ended_task);
            }
            // The event carries no outcome: the task ended elsewhere, expired, or the engine
            // closes.
            end = engine.inner.subscribers.subscribe_to_end(id);
            if let Some(ended_task) = engine.outcome(&scope, id).await? {
                return Ok(ended_task);
            }
        }
    }
}

impl Engine {
    /// Waits until the task has ended, however long that takes, and returns its outcome.
    pub async fn wait(&self, scope: &Scope, id: TaskId) -> Result<EndedTask, EngineError> {
        match self.outcome_or_wait(scope, id).await? {
            OutcomeOrWait::Ended(ended_task) => Ok(ended_task),
            OutcomeOrWait::Open(wait) => wait.settled().await,
        }
    }

    /// The outcome of a task, or the means to wait for it, by one look-up.
    pub async fn outcome_or_wait(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<OutcomeOrWait, EngineError> {
        // Most tasks that do not run here have ended, and then there is nothing to register for.
        let runs_here = self.inner.calls.contains(id);
        if !runs_here && let Some(ended_task) = self.outcome(scope, id).await? {
            return Ok(OutcomeOrWait::Ended(ended_task));
        }
        // Registered before the look-up, so that no end falls between the two (P6).
        let end = self.inner.subscribers.subscribe_to_end(id);
        Ok(match self.outcome(scope, id).await? {
            Some(ended_task) => OutcomeOrWait::Ended(ended_task),
            None => OutcomeOrWait::Open(OutcomeWait {
                engine: self.clone(),
                scope: scope.clone(),
                id,
                end,
            }),
        })
    }

    /// Watches a task from now on.
    pub async fn watch(&self, scope: &Scope, id: TaskId) -> Result<Watch, EngineError> {
        let (subscription, events) = self.inner.subscribers.subscribe_to_events(id);
        let first = self.get(scope, id).await?;
        events.skip_up_to(first.revision());
        // Of a task that has ended nothing more will be told.
        let subscription = first.ending().is_none().then_some(subscription);
        Ok(Watch {
            first,
            events,
            inner: self.inner.clone(),
            _subscription: subscription,
        })
    }
}

impl Inner {
    /// A watch of `task` that was begun before it.
    pub(super) fn watch_from(
        self: &Arc<Self>,
        task: Committed<Task>,
        (subscription, events): (Subscription, EventReceiver),
    ) -> Watch {
        events.skip_up_to(task.revision);
        Watch {
            first: task.into(),
            events,
            inner: self.clone(),
            _subscription: Some(subscription),
        }
    }
}
