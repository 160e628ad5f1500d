//! Stores status updates of running calls in batches, after a delay, and only the newest of each
//! call.

use std::sync::Arc;

use tokio::sync::Notify;

use super::call_state::CallState;
use super::change::ChangeError;
use super::{EnginePhase, Inner};
use crate::id::{Scope, TaskId};
use crate::runtime::{Mutex, MutexGuard, sleep, spawn};
use crate::store::{Snapshot, StoreError};

/// The ids of calls with updates. It holds no call state, so a call that ends leaves nothing
/// behind.
#[derive(Debug, Default)]
pub(crate) struct StatusQueue {
    ids: Mutex<Vec<TaskId>>,
    ready: Notify,
}

impl StatusQueue {
    /// Queues a call.
    pub(crate) fn push(&self, id: TaskId) {
        let first = {
            let mut ids = self.ids();
            ids.push(id);
            ids.len() == 1
        };
        if first {
            self.ready.notify_one();
        }
    }

    fn ids(&self) -> MutexGuard<'_, Vec<TaskId>> {
        // Critical sections do not panic.
        self.ids.lock()
    }
}

impl Inner {
    /// Stores updates until the engine closes.
    pub(crate) async fn run_status_writer(self: Arc<Self>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return,
                () = self.status_queue.ready.notified() => {}
            }
            // Wait so that several updates share a commit. The end of a call in between stores its
            // newest status itself.
            sleep(self.policy.status_delay).await;
            std::mem::swap(&mut batch, &mut self.status_queue.ids());
            let call_states = batch.drain(..).filter_map(|id| self.calls.find(id));
            for call_state in call_states.filter(|call_state| call_state.has_pending_updates()) {
                spawn(self.clone().store_pending_updates(call_state));
            }
        }
    }

    /// Stores the updates of a call. The call stays queued meanwhile, because two writers could
    /// store an older text after a newer one.
    async fn store_pending_updates(self: Arc<Self>, call_state: Arc<CallState>) {
        self.store_newest_updates(&call_state).await;
        if call_state.has_pending_updates() {
            self.status_queue.push(call_state.id);
        }
    }

    async fn store_newest_updates(&self, call_state: &Arc<CallState>) {
        loop {
            let commands = call_state.take_pending_updates();
            let Some(known) = call_state.newest() else {
                // The call is not a task: its updates are applied in memory only.
                for command in commands {
                    let _ = self.command(call_state, command).await;
                }
                return;
            };
            let again = commands.clone();
            match self.commit(&known, commands).await {
                Ok(_) | Err(ChangeError::Refused(_)) => return,
                Err(ChangeError::Store(StoreError::Conflict { .. })) => {
                    if !self.refresh(call_state).await {
                        return;
                    }
                    call_state.restore_updates(again);
                }
                Err(ChangeError::Store(error)) => {
                    // A status text is not worth a retry. The next update tries again.
                    tracing::warn!(task = %call_state.id, %error, "could not store a status text");
                    return;
                }
            }
        }
    }

    /// Reads the newest revision from the store. Returns false if there is no revision that
    /// `call_state` may change.
    async fn refresh(&self, call_state: &CallState) -> bool {
        match self.store.get(&Scope::AnyTask, call_state.id).await {
            Ok(Some(Snapshot::Open(task))) if task.attempt == call_state.attempt => {
                call_state.update_newest(&task);
                true
            }
            _ => false,
        }
    }
}
