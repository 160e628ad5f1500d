//! Handles store writes whose reply was lost. The engine reads the task again to find out whether
//! the write was committed. If it was, this engine performs the effects of the write (P4, P6).

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::run::RetryDelay;
use super::{EnginePhase, Inner};
use crate::id::{Scope, TaskId};
use crate::store::{InsertResult, Snapshot, StoreError, StoreFuture};

impl Inner {
    /// Schedules a read of the task, after which this engine performs the effects of its state.
    pub(crate) fn reconcile_later(&self, id: TaskId) {
        // `send` fails only after the engine has closed. Then no subscriber needs the effects.
        let _ = self.unresolved.send(id);
    }

    /// Reconciles tasks until the engine closes.
    pub(crate) async fn run_reconciler(
        self: Arc<Self>,
        mut queue: mpsc::UnboundedReceiver<TaskId>,
    ) {
        let mut pending = BTreeSet::new();
        let mut delay = RetryDelay::default();
        loop {
            if pending.is_empty() {
                delay = RetryDelay::default();
                tokio::select! {
                    biased;
                    () = self.reached(EnginePhase::Closed) => return,
                    id = queue.recv() => pending.extend(id),
                }
            }
            while let Ok(id) = queue.try_recv() {
                pending.insert(id);
            }
            for id in std::mem::take(&mut pending) {
                match self.apply_stored_state(id).await {
                    Err(error) if error.is_transient() => {
                        pending.insert(id);
                    }
                    Err(error) => {
                        tracing::error!(task = %id, %error, "could not determine the outcome of a write");
                    }
                    Ok(()) => {}
                }
            }
            if !pending.is_empty() {
                tokio::select! {
                    biased;
                    () = self.reached(EnginePhase::Closed) => return,
                    () = delay.wait(&*self.ids) => {}
                }
            }
        }
    }

    /// Determines the result of an insertion. If the reply does not show it, reads the task.
    pub(crate) async fn insert_result(
        &self,
        id: TaskId,
        reply: StoreFuture<'static, InsertResult>,
    ) -> Result<InsertResult, StoreError> {
        match reply.await {
            Err(error) if error.is_transient() => {
                match self.store.load(&Scope::AnyTask, id).await {
                    Ok(Some(task)) => Ok(InsertResult::New(task)),
                    Ok(None) | Err(_) => Err(error),
                }
            }
            reply => reply,
        }
    }

    /// Removes a task whose creation was reported as failed, if the store has it. Retries while the
    /// store fails.
    pub(crate) async fn remove_uncreated(&self, id: TaskId) {
        let mut delay = RetryDelay::default();
        while let Err(error) = self.remove_unless_ended(id).await {
            if !error.is_transient() || self.phase() == EnginePhase::Closed {
                tracing::error!(task = %id, %error, "could not remove a task whose creation failed");
                return;
            }
            delay.wait(&*self.ids).await;
        }
    }

    /// Removes a task whose id no caller has received, unless it has ended. Does not retry.
    pub(crate) async fn remove_unless_ended(&self, id: TaskId) -> Result<(), StoreError> {
        while let Some(Snapshot::Open(task)) = self.store.get(&Scope::AnyTask, id).await? {
            self.store
                .remove(self.node, vec![(id, task.revision)])
                .await?;
        }
        // A client may have found the task in a list and wait for its end, so waiters are notified.
        // If the call still runs without a task, its subscribers are kept.
        if self.calls.find(id).is_none() {
            self.subscribers.end_without_outcome(id);
        }
        Ok(())
    }
}
