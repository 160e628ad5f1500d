//! The end of a call: its outcome is sent to its caller, or stored, however long the store takes.

use std::sync::Arc;

use super::call_state::{Cell, Stage};
use super::change::Failed;
use super::run::Pause;
use super::{Inner, Phase};
use crate::id::Scope;
use crate::outcome::Outcome;
use crate::store::{Committed, Snapshot, StoreError};
use crate::task::Task;
use crate::transition::Command;

impl Inner {
    /// Ends the call with `outcome`.
    pub(super) async fn finish(&self, cell: &Arc<Cell>, outcome: Outcome) {
        let ending = outcome.ending();
        let outcome = self.policy.sizes.admit(outcome);
        let (known, status, message) = {
            let mut local = cell.local();
            match std::mem::replace(&mut local.stage, Stage::Over) {
                Stage::Plain(_, caller) => {
                    drop(local);
                    self.calls.take(cell.id, cell.attempt);
                    if let Some(caller) = caller {
                        let _ = caller.send(outcome);
                    }
                    self.topics.settle(cell.id, None);
                    return;
                }
                Stage::Promoting(task, caller, _) => {
                    // The promotion decides how the outcome is delivered.
                    local.stage = Stage::Promoting(task, caller, Some(outcome));
                    return;
                }
                Stage::Stored(known) => (known, local.status.take(), local.end_message.take()),
                // Nothing runs before it is stored.
                Stage::Storing | Stage::Over => return,
            }
        };
        let attempt = cell.attempt;
        // A status text that is not stored yet is stored with the end.
        let status = status.map(|message| Command::Status { attempt, message });
        let end = Command::End {
            attempt,
            // One that says how the work ended, where something else was stored, is not kept.
            message: message.filter(|_| ending == outcome.ending()),
            outcome,
        };
        let commands: Vec<_> = status.into_iter().chain([end]).collect();
        self.store_end(cell, known, commands).await;
        self.calls.take(cell.id, attempt);
    }

    /// Stores the end of a task, again and again if need be.
    async fn store_end(&self, cell: &Cell, mut known: Committed<Task>, commands: Vec<Command>) {
        let task = cell.id;
        let mut pause = Pause::default();
        loop {
            match self.commit(&known, commands.clone()).await {
                Ok(_) => return,
                Err(Failed::Refused(why)) => {
                    tracing::info!(%task, %why, "a late outcome was dropped");
                    return;
                }
                Err(Failed::Store(StoreError::Conflict { .. })) => {}
                Err(Failed::Store(error)) if self.may_retry(&error) => {
                    tracing::warn!(%task, %error, "an outcome waits for the store");
                    pause.rest().await;
                }
                Err(Failed::Store(error)) => {
                    tracing::error!(%task, %error, "an outcome could not be stored");
                    return;
                }
            }
            known = match self.still_open(cell, &mut pause).await {
                Some(open) => open,
                None => {
                    tracing::info!(%task, "a late outcome was dropped");
                    return;
                }
            };
        }
    }

    /// The task as it stands, unless it has ended or is gone, however long the store takes to say so.
    async fn still_open(&self, cell: &Cell, pause: &mut Pause) -> Option<Committed<Task>> {
        loop {
            match self.store.get(&Scope::Anyone, cell.id).await {
                Ok(Some(Snapshot::Open(task))) => return Some(task),
                Ok(Some(Snapshot::Ended(_)) | None) => return None,
                Err(error) if self.may_retry(&error) => pause.rest().await,
                Err(error) => {
                    tracing::error!(task = %cell.id, %error, "an outcome could not be stored");
                    return None;
                }
            }
        }
    }

    fn may_retry(&self, error: &StoreError) -> bool {
        error.is_passing() && self.phase() != Phase::Closed
    }
}
