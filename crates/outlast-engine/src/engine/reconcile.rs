//! Writes whose answer was lost. Nobody knows whether they took place until the store is asked
//! again; if they did, their effects must follow here all the same (P4, P6).

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::run::RetryDelay;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::store::{InsertResult, Snapshot, StoreError, StoreFuture};

impl Inner {
    /// Sees to it that whatever became of the task has its effects here.
    pub(crate) fn reconcile_later(&self, id: TaskId) {
        // The loop is gone only when the engine is; then nobody waits here any more.
        let _ = self.unresolved.send(id);
    }

    /// Looks after doubtful tasks until the engine closes.
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
                    () = self.reached(Phase::Closed) => return,
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
                    Err(error) => tracing::error!(task = %id, %error, "a doubt remains"),
                    Ok(()) => {}
                }
            }
            if !pending.is_empty() {
                tokio::select! {
                    biased;
                    () = self.reached(Phase::Closed) => return,
                    () = delay.wait() => {}
                }
            }
        }
    }

    /// What became of a task that the store was asked to add. If the reply does not say, reads the
    /// task.
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

    /// Removes a task that its caller was told is none, should the store have it, however long the
    /// store takes to say so.
    pub(crate) async fn remove_unowned(&self, id: TaskId) {
        let mut delay = RetryDelay::default();
        while let Err(error) = self.take_back(id).await {
            if !error.is_transient() || self.phase() == Phase::Closed {
                tracing::error!(task = %id, %error, "a task that nobody holds could not be removed");
                return;
            }
            delay.wait().await;
        }
    }

    /// Removes a task that nobody holds a handle to, unless it has ended.
    pub(crate) async fn take_back(&self, id: TaskId) -> Result<(), StoreError> {
        while let Some(Snapshot::Open(task)) = self.store.get(&Scope::AnyTask, id).await? {
            self.store
                .remove(self.node, vec![(id, task.revision)])
                .await?;
        }
        // Somebody may have found it in a list and wait. A call that goes on keeps its listeners.
        if self.calls.find(id).is_none() {
            self.subscribers.end_without_outcome(id);
        }
        Ok(())
    }
}
