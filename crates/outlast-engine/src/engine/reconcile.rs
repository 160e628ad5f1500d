//! Writes whose answer was lost. Nobody knows whether they took place until the store is asked again;
//! if they did, their effects must follow here all the same (P4, P6).

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::run::Pause;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::store::{Inserted, Snapshot, StoreError, StoreFuture};

impl Inner {
    /// Sees to it that whatever became of the task has its effects here.
    pub(crate) fn doubt(&self, id: TaskId) {
        // The loop is gone only when the engine is; then nobody waits here any more.
        let _ = self.doubts.send(id);
    }

    /// Looks after doubtful tasks until the engine closes.
    pub(crate) async fn resolve_doubts(
        self: Arc<Self>,
        mut queue: mpsc::UnboundedReceiver<TaskId>,
    ) {
        let mut doubtful = BTreeSet::new();
        let mut pause = Pause::default();
        loop {
            if doubtful.is_empty() {
                pause = Pause::default();
                tokio::select! {
                    biased;
                    () = self.reached(Phase::Closed) => return,
                    id = queue.recv() => doubtful.extend(id),
                }
            }
            while let Ok(id) = queue.try_recv() {
                doubtful.insert(id);
            }
            for id in std::mem::take(&mut doubtful) {
                match self.react(id).await {
                    Err(error) if error.is_passing() => {
                        doubtful.insert(id);
                    }
                    Err(error) => tracing::error!(task = %id, %error, "a doubt remains"),
                    Ok(()) => {}
                }
            }
            if !doubtful.is_empty() {
                tokio::select! {
                    biased;
                    () = self.reached(Phase::Closed) => return,
                    () = pause.rest() => {}
                }
            }
        }
    }

    /// What became of a task that the store was asked to add. If the reply does not say, reads the task.
    pub(crate) async fn inserted(
        &self,
        id: TaskId,
        reply: StoreFuture<'static, Inserted>,
    ) -> Result<Inserted, StoreError> {
        match reply.await {
            Err(error) if error.is_passing() => match self.store.load(&Scope::Anyone, id).await {
                Ok(Some(task)) => Ok(Inserted::New(task)),
                Ok(None) | Err(_) => Err(error),
            },
            reply => reply,
        }
    }

    /// Removes a task that its caller was told is none, should the store have it, however long the
    /// store takes to say so.
    pub(crate) async fn disown(&self, id: TaskId) {
        let mut pause = Pause::default();
        while let Err(error) = self.take_back(id).await {
            if !error.is_passing() || self.phase() == Phase::Closed {
                tracing::error!(task = %id, %error, "a task that nobody holds could not be removed");
                return;
            }
            pause.rest().await;
        }
    }

    /// Removes a task that nobody holds a handle to, unless it has ended.
    pub(crate) async fn take_back(&self, id: TaskId) -> Result<(), StoreError> {
        while let Some(Snapshot::Open(task)) = self.store.get(&Scope::Anyone, id).await? {
            self.store
                .remove(self.node, vec![(id, task.revision)])
                .await?;
        }
        // Somebody may have found it in a list and wait. A call that goes on keeps its listeners.
        if self.calls.find(id).is_none() {
            self.topics.settle(id, None);
        }
        Ok(())
    }
}
