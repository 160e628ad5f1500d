//! Deletes an ended task before its TTL ends.

use super::{Actor, Engine, EngineError, audit};
use crate::id::TaskId;
use crate::runtime::run_to_completion;
use crate::store::Snapshot;

impl Engine {
    /// Deletes an ended task with its outcome and its deadline. Returns whether it was deleted. A
    /// task that has not ended is unchanged.
    pub async fn delete_ended(
        &self,
        actor: impl Into<Actor>,
        id: TaskId,
    ) -> Result<bool, EngineError> {
        let actor = actor.into();
        let Snapshot::Ended(summary) = self.get(actor.scope(), id).await? else {
            return Ok(false);
        };
        let inner = self.inner.clone();
        run_to_completion(async move {
            let removed = inner.store.remove(inner.node, vec![(id, summary.revision)]);
            let is_removed = !removed.await?.is_empty();
            if is_removed {
                audit::deleted(id, &summary.owner, &actor);
                inner.task_removed(id);
            }
            Ok(is_removed)
        })
        .await
    }
}
