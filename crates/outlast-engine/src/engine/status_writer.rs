//! Remarks of running calls: stored together, a moment later, the last of each call only.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::call_state::Cell;
use super::change::Failed;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::runtime::{Mutex, MutexGuard, sleep, spawn};
use crate::store::{Snapshot, StoreError};
use crate::transition::Command;

/// The calls that have something to remark. Only their names: a call that ends meanwhile leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    of: Mutex<Vec<TaskId>>,
    some: Notify,
}

impl Remarks {
    /// Says that a call has something to remark.
    pub(crate) fn expect(&self, id: TaskId) {
        let first = {
            let mut of = self.of();
            of.push(id);
            of.len() == 1
        };
        if first {
            self.some.notify_one();
        }
    }

    fn of(&self) -> MutexGuard<'_, Vec<TaskId>> {
        // Nothing in a critical section panics.
        self.of.lock()
    }
}

impl Inner {
    /// Stores remarks until the engine closes.
    pub(crate) async fn store_statuses(self: Arc<Self>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.reached(Phase::Closed) => return,
                () = self.remarks.some.notified() => {}
            }
            // Company arrives meanwhile, and a call that ends takes its last remark along.
            sleep(Duration::from_millis(self.policy.status_delay)).await;
            std::mem::swap(&mut batch, &mut self.remarks.of());
            let cells = batch.drain(..).filter_map(|id| self.calls.find(id));
            for cell in cells.filter(|cell| cell.has_remarks()) {
                spawn(self.clone().store_remarks(cell));
            }
        }
    }

    /// Stores the remarks of a call. The call stays queued meanwhile: two writers could store an older text after a
    /// newer one.
    async fn store_remarks(self: Arc<Self>, cell: Arc<Cell>) {
        self.store_newest_remarks(&cell).await;
        if cell.has_remarks() {
            self.remarks.expect(cell.id);
        }
    }

    async fn store_newest_remarks(&self, cell: &Arc<Cell>) {
        loop {
            let commands = cell.take_remarks();
            let Some(known) = cell.known() else {
                // No task yet, or no longer: a plain call keeps its remarks to itself.
                for command in commands {
                    let _ = self.command(cell, command).await;
                }
                return;
            };
            let again = commands.clone();
            match self.commit(&known, commands).await {
                Ok(_) | Err(Failed::Refused(_)) => return,
                Err(Failed::Store(StoreError::Conflict { .. })) => {
                    if !self.refresh(cell).await {
                        return;
                    }
                    cell.put_back(again);
                }
                Err(Failed::Store(error)) => {
                    // A remark is not worth waiting for; the next one tries again.
                    tracing::warn!(task = %cell.id, %error, "a status text was not stored");
                    return;
                }
            }
        }
    }

    /// Looks at the store for the newest revision. False if there is none that `cell` may change.
    async fn refresh(&self, cell: &Cell) -> bool {
        match self.store.get(&Scope::Anyone, cell.id).await {
            Ok(Some(Snapshot::Open(task))) if task.attempt == cell.attempt => {
                cell.saw(&task);
                true
            }
            _ => false,
        }
    }
}

impl Cell {
    /// Whether something waits to be stored. If not, the next remark queues the call anew.
    fn has_remarks(&self) -> bool {
        let mut local = self.local();
        local.queued = local.status.is_some() || !local.confirmed.is_empty();
        local.queued
    }

    /// Takes out what waits to be stored.
    fn take_remarks(&self) -> Vec<Command> {
        let attempt = self.attempt;
        let (status, confirmed) = {
            let mut local = self.local();
            (local.status.take(), std::mem::take(&mut local.confirmed))
        };
        let status = status.map(|message| Command::Status { attempt, message });
        let confirmed = confirmed
            .into_iter()
            .map(|key| Command::Confirm { attempt, key });
        confirmed.chain(status).collect()
    }

    /// Keeps remarks that were not stored, unless newer ones came.
    fn put_back(&self, commands: Vec<Command>) {
        let mut local = self.local();
        for command in commands {
            match command {
                Command::Status { message, .. } => {
                    local.status.get_or_insert(message);
                }
                Command::Confirm { key, .. } => local.confirmed.push(key),
                _ => {}
            }
        }
    }
}
