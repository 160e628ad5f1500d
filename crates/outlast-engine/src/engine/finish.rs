//! The end of a call: its outcome is sent to its caller, or stored with retries while the store
//! fails.

use std::sync::Arc;

use super::call_state::{CallEnd, CallState};
use super::change::ChangeError;
use super::run::RetryDelay;
use super::{EnginePhase, Inner};
use crate::id::Scope;
use crate::outcome::Outcome;
use crate::store::{Committed, Snapshot, StoreError};
use crate::task::Task;
use crate::transition::Command;

impl Inner {
    /// Ends the call with `outcome`.
    pub(super) async fn finish(&self, call_state: &Arc<CallState>, outcome: Outcome) {
        let ending = outcome.ending();
        let outcome = self.policy.sizes.admit(outcome);
        let (known, status, message, outcome) = match call_state.finish(outcome) {
            CallEnd::Plain(caller, outcome) => {
                self.calls.take(call_state.id, call_state.attempt);
                if let Some(caller) = caller {
                    let _ = caller.send(outcome);
                }
                self.subscribers.end_without_outcome(call_state.id);
                return;
            }
            CallEnd::Stored {
                task,
                status,
                message,
                outcome,
            } => (task, status, message, outcome),
            CallEnd::Nothing => return,
        };
        let attempt = call_state.attempt;
        // A status text that is not stored yet is stored with the end.
        let status = status.map(|message| Command::Status { attempt, message });
        let end = Command::End {
            attempt,
            // A final status text does not apply if another outcome was stored.
            message: message.filter(|_| ending == outcome.ending()),
            outcome,
        };
        let commands: Vec<_> = status.into_iter().chain([end]).collect();
        self.store_end(call_state, known, commands).await;
        self.calls.take(call_state.id, attempt);
    }

    /// Stores the end of a task, with retries.
    async fn store_end(
        &self,
        call_state: &CallState,
        mut known: Committed<Task>,
        commands: Vec<Command>,
    ) {
        let task = call_state.id;
        let mut delay = RetryDelay::default();
        loop {
            match self.commit(&known, commands.clone()).await {
                Ok(_) => return,
                Err(ChangeError::Refused(why)) => {
                    tracing::info!(%task, %why, "dropped an outcome: the task has already ended");
                    return;
                }
                Err(ChangeError::Store(StoreError::Conflict { .. })) => {}
                Err(ChangeError::Store(error)) if self.may_retry(&error) => {
                    tracing::warn!(%task, %error, "cannot store an outcome; retrying");
                    delay.wait(&*self.ids).await;
                }
                Err(ChangeError::Store(error)) => {
                    tracing::error!(%task, %error, "could not store an outcome");
                    return;
                }
            }
            known = match self.still_open(call_state, &mut delay).await {
                Some(open) => open,
                None => {
                    tracing::info!(%task, "dropped an outcome: the task has already ended");
                    return;
                }
            };
        }
    }

    /// Reads the task, with retries. Returns `None` if it has ended or was removed.
    async fn still_open(
        &self,
        call_state: &CallState,
        delay: &mut RetryDelay,
    ) -> Option<Committed<Task>> {
        loop {
            match self.store.get(&Scope::AnyTask, call_state.id).await {
                Ok(Some(Snapshot::Open(task))) => return Some(task),
                Ok(Some(Snapshot::Ended(_)) | None) => return None,
                Err(error) if self.may_retry(&error) => delay.wait(&*self.ids).await,
                Err(error) => {
                    tracing::error!(task = %call_state.id, %error, "could not store an outcome");
                    return None;
                }
            }
        }
    }

    fn may_retry(&self, error: &StoreError) -> bool {
        error.is_transient() && self.phase() != EnginePhase::Closed
    }
}
