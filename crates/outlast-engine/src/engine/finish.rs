//! The end of a call: its outcome is handed to whoever waits, or stored, however long the store takes to keep it.

use std::pin::Pin;
use std::sync::Arc;

use super::cell::{Cell, Stage};
use super::change::{Change, Draft};
use super::drive::Pause;
use super::{Inner, Phase};
use crate::id::Scope;
use crate::outcome::Outcome;
use crate::store::{Committed, Snapshot, StoreError, Told};
use crate::task::Task;
use crate::transition::Command;

/// What is left to do for the end of a call.
pub(super) type Rest = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An end that is to be stored; a status text that waits for company goes with it.
struct End {
    cell: Arc<Cell>,
    status: Option<Arc<str>>,
    outcome: Outcome,
}

/// What the store has been given.
type Given = (Told<'static, Committed<Task>>, Change);

impl Inner {
    /// Ends the call with `outcome`. Where the store needs time, that is left to do.
    pub(super) fn finish(self: &Arc<Self>, cell: Arc<Cell>, outcome: Outcome) -> Option<Rest> {
        let outcome = self.policy.sizes.admit(outcome);
        let (known, status) = {
            let mut local = cell.local();
            match std::mem::replace(&mut local.stage, Stage::Over) {
                Stage::Plain(_, tell) => {
                    drop(local);
                    self.calls.take(cell.id, cell.attempt);
                    if let Some(tell) = tell {
                        let _ = tell.send(outcome);
                    }
                    self.topics.settle(cell.id, None);
                    return None;
                }
                Stage::Promoting(task, tell, _) => {
                    // Whoever promotes it decides how the outcome travels.
                    local.stage = Stage::Promoting(task, tell, Some(outcome));
                    return None;
                }
                Stage::Stored(known) => (known, local.status.take()),
                // Nothing runs before it is stored.
                Stage::Storing | Stage::Over => return None,
            }
        };
        let end = End {
            cell,
            status,
            outcome,
        };
        let (told, change) = self.give(known, &end)?;
        match told.at_once() {
            Ok(Ok(stored)) => {
                // It is stored, so the effects follow, and nothing is left to do.
                let _ = self.conclude(Ok(stored), change, Some(&end.cell));
                None
            }
            Ok(failed) => Some(Box::pin(
                self.clone().see_to(end, (Told::now(failed), change)),
            )),
            Err(told) => Some(Box::pin(self.clone().see_to(end, (told, change)))),
        }
    }

    /// Gives an end to the store. None if nobody wants it any more.
    fn give(&self, known: Committed<Task>, end: &End) -> Option<Given> {
        let attempt = end.cell.attempt;
        let mut draft = Draft::of(known, self.now());
        let status = end.status.clone();
        let status = status.map_or(Ok(()), |message| {
            draft.apply(Command::Status { attempt, message })
        });
        let outcome = end.outcome.clone();
        status
            .and_then(|()| draft.apply(Command::End { attempt, outcome }))
            .and_then(|()| self.hand_over(draft))
            .inspect_err(|why| {
                tracing::info!(task = %end.cell.id, %why, "a late outcome was dropped");
                self.calls.take(end.cell.id, attempt);
            })
            .ok()
    }

    /// Waits until an end is stored, and gives it to the store again and again if need be.
    async fn see_to(self: Arc<Self>, end: End, given: Given) {
        let (cell, mut given) = (&end.cell, given);
        let mut pause = Pause::default();
        loop {
            let (told, change) = given;
            match self.conclude(told.await, change, Some(cell)) {
                Ok(_) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(passing) if passing.is_passing() && self.phase() != Phase::Closed => {
                    tracing::warn!(task = %cell.id, %passing, "an outcome waits for the store");
                    pause.rest().await;
                }
                Err(error) => {
                    tracing::error!(task = %cell.id, %error, "an outcome could not be stored");
                    break;
                }
            }
            let Some(known) = self.still_open(cell, &mut pause).await else {
                tracing::info!(task = %cell.id, "a late outcome was dropped");
                break;
            };
            given = match self.give(known, &end) {
                Some(given) => given,
                None => return,
            };
        }
        self.calls.take(cell.id, cell.attempt);
    }

    /// The task as it stands, unless it has ended or is gone, however long the store takes to say so.
    async fn still_open(&self, cell: &Cell, pause: &mut Pause) -> Option<Committed<Task>> {
        loop {
            match self.store.get(&Scope::Anyone, cell.id).await {
                Ok(Some(Snapshot::Open(task))) => return Some(task),
                Ok(Some(Snapshot::Ended(_)) | None) => return None,
                Err(error) if error.is_passing() && self.phase() != Phase::Closed => {
                    pause.rest().await;
                }
                Err(error) => {
                    tracing::error!(task = %cell.id, %error, "an outcome could not be stored");
                    return None;
                }
            }
        }
    }
}
