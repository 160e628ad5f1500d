//! Deletions that can be undone: a task disappears from the pages at once, and from the store after
//! [`UNDO_TIME`]. If the process ends before, the task is kept.

use std::collections::HashMap;
use std::time::Duration;

use outlast_engine::{Actor, TaskId};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::console::App;
use crate::error::ConsoleError;

/// The deletions that can still be undone.
#[derive(Debug, Default)]
pub(crate) struct Deletions(Mutex<HashMap<TaskId, AbortHandle>>);

impl Deletions {
    /// Whether the task is being deleted.
    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.0.lock().contains_key(&id)
    }

    /// Deletes an ended task after the time for an undo.
    pub(crate) fn schedule(&self, app: &App, actor: Actor, id: TaskId) -> Result<(), ConsoleError> {
        let mut waiting = self.0.lock();
        if waiting.len() >= MAX_PENDING_DELETIONS {
            return Err(ConsoleError::conflict("too many deletions at once")
                .next("wait ten seconds and try again"));
        }
        let app = app.clone();
        let work = tokio::spawn(async move {
            tokio::time::sleep(UNDO_TIME).await;
            if let Err(error) = app.engine().delete_ended(actor, id).await {
                tracing::warn!(task = %id, %error, "cannot delete a task");
            }
            app.deletions().0.lock().remove(&id);
        });
        if let Some(earlier) = waiting.insert(id, work.abort_handle()) {
            earlier.abort();
        }
        Ok(())
    }

    /// Undoes a deletion. Returns whether there was one.
    pub(crate) fn undo(&self, id: TaskId) -> bool {
        let found = self.0.lock().remove(&id);
        if let Some(work) = &found {
            work.abort();
        }
        found.is_some()
    }
}

/// How long a deletion can be undone.
pub(crate) const UNDO_TIME: Duration = Duration::from_secs(10);

const MAX_PENDING_DELETIONS: usize = 10_000;
