//! Deletes an ended task before its TTL is over.

use super::{Engine, EngineError, audit};
use crate::id::{Scope, TaskId};
use crate::runtime::to_the_end;
use crate::store::Snapshot;

impl Engine {
    /// Deletes a task that has ended, with its outcome and its deadline. Returns whether it was deleted: a task that has not
    /// ended is left as it is.
    pub async fn delete_ended(&self, scope: &Scope, id: TaskId) -> Result<bool, EngineError> {
        let Snapshot::Ended(brief) = self.get(scope, id).await? else {
            return Ok(false);
        };
        let inner = self.inner.clone();
        to_the_end(async move {
            let removed = inner.store.remove(inner.node, vec![(id, brief.revision)]);
            let is_removed = !removed.await?.is_empty();
            if is_removed {
                audit::deleted(id);
                inner.gone(id);
            }
            Ok(is_removed)
        })
        .await
    }
}
