//! Waiting for the end of a task and watching it, by event. Nothing here polls.

use std::sync::Arc;

use super::mailbox::Mailbox;
use super::topics::Place;
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

impl Engine {
    /// Waits until the task has ended, however long that takes, and returns its outcome.
    pub async fn wait(&self, scope: &Scope, id: TaskId) -> Result<Settled, EngineError> {
        // Most come when the task has ended, and need no place among those who wait.
        let runs_here = self.inner.calls.contains(id);
        if !runs_here && let Some(settled) = self.outcome(scope, id).await? {
            return Ok(settled);
        }
        loop {
            // In this order, so that no end falls between the look and the wait (P6).
            let (_place, told) = self.inner.topics.end_of(id);
            if let Some(settled) = self.outcome(scope, id).await? {
                return Ok(settled);
            }
            // Whoever takes a place after the engine has closed sees that here; those before lose theirs.
            if self.inner.phase() == Phase::Closed {
                return Err(EngineError::Closing);
            }
            if let Ok(Some(settled)) = told.await {
                return Ok(settled);
            }
        }
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
