//! Waiting for the end of a task and watching its events. Nothing here polls.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::event_queue::EventReceiver;
use super::subscribers::Subscription;
use super::{EndedTask, Engine, EngineError, EnginePhase, Event, Inner};
use crate::id::{Scope, TaskId};
use crate::store::{Committed, Snapshot};
use crate::task::Task;

/// The events of one task until its end.
pub struct Watch {
    /// The state of the task when the watch started.
    pub first: Snapshot,
    events: EventReceiver,
    inner: Arc<Inner>,
    _subscription: Option<Subscription>,
}

impl Watch {
    /// Returns the next event, or `None` when the task has ended or was removed, or the engine was
    /// closed.
    ///
    /// A slow watcher misses intermediate events: read the task once after the last event.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            event = self.events.next() => event,
            () = self.inner.reached(EnginePhase::Closed) => None,
        }
    }
}

/// The state of a task for a waiter.
pub enum OutcomeOrWait {
    /// It has ended.
    Ended(EndedTask),
    /// It has not ended yet.
    Open(OutcomeWait),
}

/// Waits for the end of a task that was open when this was created.
pub struct OutcomeWait {
    engine: Engine,
    scope: Scope,
    id: TaskId,
    end: (Subscription, oneshot::Receiver<Option<EndedTask>>),
}

impl OutcomeWait {
    /// Resolves when the task has ended or was removed. There is no time limit.
    pub async fn settled(self) -> Result<EndedTask, EngineError> {
        let Self {
            engine,
            scope,
            id,
            mut end,
        } = self;
        loop {
            // If the engine is closed, no notification arrives. A waiter that was registered before
            // is removed at the close: its receiver fails, and the loop returns to this check.
            if engine.inner.phase() == EnginePhase::Closed {
                return Err(EngineError::Closing);
            }
            let (_subscription, received) = end;
            if let Ok(Some(ended_task)) = received.await {
                return Ok(ended_task);
            }
            // The notification contains no outcome: the task ended on another node, expired, or the
            // engine closes.
            end = engine.inner.subscribers.subscribe_to_end(id);
            if let Some(ended_task) = engine.outcome(&scope, id).await? {
                return Ok(ended_task);
            }
        }
    }
}

impl Engine {
    /// Waits until the task has ended, without a time limit, and returns its outcome.
    pub async fn wait(&self, scope: &Scope, id: TaskId) -> Result<EndedTask, EngineError> {
        match self.outcome_or_wait(scope, id).await? {
            OutcomeOrWait::Ended(ended_task) => Ok(ended_task),
            OutcomeOrWait::Open(wait) => wait.settled().await,
        }
    }

    /// Returns the outcome of a task, or a future that waits for it, with one lookup.
    pub async fn outcome_or_wait(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<OutcomeOrWait, EngineError> {
        // Most tasks that do not run here have ended, and then no registration is needed.
        let runs_here = self.inner.calls.contains(id);
        if !runs_here && let Some(ended_task) = self.outcome(scope, id).await? {
            return Ok(OutcomeOrWait::Ended(ended_task));
        }
        // Registered before the lookup, so that no end is missed between the two (P6).
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
        // A task that has ended has no further events.
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
    /// Makes a watch of `task` from a subscription that was registered before the task was read.
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
