//! Remarks of running calls: stored together, a moment later, the last of each call only.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::call_state::CallState;
use super::change::ChangeError;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::runtime::{Mutex, MutexGuard, sleep, spawn};
use crate::store::{Snapshot, StoreError};
use crate::transition::Command;

/// The calls that have something to remark. Only their names: a call that ends meanwhile leaves
/// nothing behind.
#[derive(Debug, Default)]
pub(crate) struct StatusQueue {
    ids: Mutex<Vec<TaskId>>,
    ready: Notify,
}

impl StatusQueue {
    /// Says that a call has something to remark.
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
        // Nothing in a critical section panics.
        self.ids.lock()
    }
}

impl Inner {
    /// Stores remarks until the engine closes.
    pub(crate) async fn run_status_writer(self: Arc<Self>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.reached(Phase::Closed) => return,
                () = self.status_queue.ready.notified() => {}
            }
            // Company arrives meanwhile, and a call that ends takes its last remark along.
            sleep(Duration::from_millis(self.policy.status_delay_ms)).await;
            std::mem::swap(&mut batch, &mut self.status_queue.ids());
            let call_states = batch.drain(..).filter_map(|id| self.calls.find(id));
            for call_state in call_states.filter(|call_state| call_state.has_pending_updates()) {
                spawn(self.clone().store_pending_updates(call_state));
            }
        }
    }

    /// Stores the remarks of a call. The call stays queued meanwhile: two writers could store an
    /// older text after a newer one.
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
                // No task yet, or no longer: a plain call keeps its remarks to itself.
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
                    call_state.put_back(again);
                }
                Err(ChangeError::Store(error)) => {
                    // A remark is not worth waiting for; the next one tries again.
                    tracing::warn!(task = %call_state.id, %error, "a status text was not stored");
                    return;
                }
            }
        }
    }

    /// Looks at the store for the newest revision. False if there is none that `call_state` may
    /// change.
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

impl CallState {
    /// Whether something waits to be stored. If not, the next remark queues the call anew.
    fn has_pending_updates(&self) -> bool {
        let mut fields = self.lock();
        fields.is_queued =
            fields.pending_status.is_some() || !fields.pending_confirmations.is_empty();
        fields.is_queued
    }

    /// Takes out what waits to be stored.
    fn take_pending_updates(&self) -> Vec<Command> {
        let attempt = self.attempt;
        let (status, confirmed) = {
            let mut fields = self.lock();
            (
                fields.pending_status.take(),
                std::mem::take(&mut fields.pending_confirmations),
            )
        };
        let status = status.map(|message| Command::Status { attempt, message });
        let confirmed = confirmed
            .into_iter()
            .map(|key| Command::ConfirmInput { attempt, key });
        confirmed.chain(status).collect()
    }

    /// Keeps remarks that were not stored, unless newer ones came.
    fn put_back(&self, commands: Vec<Command>) {
        let mut fields = self.lock();
        for command in commands {
            match command {
                Command::Status { message, .. } => {
                    fields.pending_status.get_or_insert(message);
                }
                Command::ConfirmInput { key, .. } => fields.pending_confirmations.push(key),
                _ => {}
            }
        }
    }
}
