//! Events of other engines on the same store: their changes have effects here too.

use std::sync::Arc;

use super::recovery::RetryLimit;
use super::run::RetryDelay;
use super::{EnginePhase, Event, Inner, Progress};
use crate::id::{Scope, TaskId};
use crate::outcome::Ending;
use crate::store::{StoreError, StoreEvent, StoreEvents};
use crate::transition::Effect;

impl Inner {
    /// Handles store events until the engine closes.
    pub(crate) async fn run_store_event_loop(self: Arc<Self>, mut events: StoreEvents) {
        loop {
            let event = tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return,
                event = events.recv() => event,
            };
            match event {
                None | Some(StoreEvent::LeaseLost) => match self.rejoin().await {
                    Some(next) => events = next,
                    None => return,
                },
                // Not here: a recovery may have to wait until this node has joined again.
                Some(StoreEvent::NodeLeft) => self.orphans.notify_one(),
                Some(StoreEvent::Progress(id, progress)) => {
                    self.subscribers
                        .publish(id, || Event::Progress(progress.clone()));
                }
                Some(StoreEvent::TaskChanged(id)) => {
                    self.changes.task(id);
                    if let Err(error) = self.apply_stored_state(id).await {
                        tracing::warn!(task = %id, %error, "cannot read a task that another node changed; retrying");
                        self.reconcile_later(id);
                    }
                }
            }
        }
    }

    /// Recovers the tasks of nodes that left until the engine closes.
    pub(crate) async fn run_recovery_loop(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return,
                () = self.orphans.notified() => {}
            }
            if let Err(error) = self.recover(RetryLimit::Unlimited).await {
                tracing::error!(%error, "could not recover the tasks of a node that left");
            }
        }
    }

    /// Publishes progress to the watchers here, and of a task to those of other nodes.
    pub(crate) fn publish_progress(&self, id: TaskId, mut progress: Progress, is_task: bool) {
        if is_task {
            let cut = |text: Arc<str>| self.policy.sizes.cut_status(&text).into();
            progress.message = progress.message.map(cut);
            self.store.publish_progress(self.node, id, &progress);
        }
        self.subscribers
            .publish(id, || Event::Progress(progress.clone()));
    }

    /// Joins the store again after the store removed this node, and handles the changes since then.
    /// Returns `None` when the engine closes.
    async fn rejoin(&self) -> Option<StoreEvents> {
        let mut delay = RetryDelay::default();
        loop {
            tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return None,
                () = delay.wait(&*self.ids) => {}
            }
            match self.store.join(self.node).await {
                Ok(events) => {
                    let ids = self.calls.ids().into_iter().chain(self.subscribers.ids());
                    ids.for_each(|id| self.reconcile_later(id));
                    // Nodes may have left in the meantime.
                    self.orphans.notify_one();
                    return Some(events);
                }
                Err(error) if error.is_transient() => {}
                Err(error) => {
                    tracing::error!(%error, "cannot join the store again");
                    return None;
                }
            }
        }
    }

    /// Performs the effects of the stored state of a task, if this engine runs it or has
    /// subscribers for it.
    pub(crate) async fn apply_stored_state(&self, id: TaskId) -> Result<(), StoreError> {
        if self.calls.find(id).is_none() && !self.subscribers.contains(id) {
            return Ok(());
        }
        let Some(task) = self.store.load(&Scope::AnyTask, id).await? else {
            // A call that is not a task yet is not in the store.
            if self
                .calls
                .find(id)
                .is_none_or(|call_state| call_state.was_stored())
            {
                self.task_removed(id);
            }
            return Ok(());
        };
        if let Some(call_state) = self.calls.find(id)
            && call_state.attempt < task.attempt
            && let Some(earlier) = self.calls.take(id, call_state.attempt)
        {
            // P2: another node runs the task now.
            earlier.abort();
        }
        let has_body = task.state.ending().is_some_and(Ending::has_body);
        let body = if has_body {
            self.store.body(&Scope::AnyTask, id).await?
        } else {
            None
        };
        if has_body && body.is_none() {
            // Removed after it was loaded.
            self.task_removed(id);
        } else {
            self.perform_effects(&task, body, &Effect::implied_by(&task));
        }
        Ok(())
    }
}
