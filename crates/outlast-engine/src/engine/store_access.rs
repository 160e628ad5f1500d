//! Changes of tasks through a store alone, for a process that has no engine on it.
//!
//! Nothing joins the store, and nothing runs here. The engines that joined receive each change as
//! an event of another node. Only they write the records of a status, such as webhooks.

use std::sync::Arc;

use outlast_wire::Timestamp;

use super::change::{Draft, MAX_CHANGE_ATTEMPTS, open_task};
use super::{EngineError, Progress};
use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::id::{NodeId, Scope, TaskId};
use crate::policy::SizeLimits;
use crate::store::{Committed, Reason, Store, StoreError};
use crate::task::Task;
use crate::transition::{Command, Refused};

/// A store that a process writes under an id that never joins.
pub(super) struct StoreAccess {
    store: Arc<dyn Store>,
    node: NodeId,
    pub(super) sizes: SizeLimits,
}

impl StoreAccess {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            node: RandomIds.node(),
            sizes: SizeLimits::default(),
        }
    }

    /// The whole task.
    pub(super) async fn load(&self, id: TaskId) -> Result<Committed<Task>, EngineError> {
        load(&*self.store, id, SystemClock.now()).await
    }

    /// Applies `command` to a task.
    pub(super) async fn change(
        &self,
        id: TaskId,
        command: Command,
    ) -> Result<Committed<Task>, EngineError> {
        for _ in 0..MAX_CHANGE_ATTEMPTS {
            let now = SystemClock.now();
            let task = open_task(&*self.store, &Scope::AnyTask, id, now).await?;
            let mut draft = Draft::of(task, now);
            let change = match draft.apply(command.clone()) {
                Ok(()) => draft.into_change(self.node),
                Err(refused) => Err(refused),
            };
            let replace = match change {
                Ok((replace, _)) => replace,
                Err(Refused::Expired) => return Err(EngineError::Expired),
                Err(refused) => return Err(refused.into()),
            };
            match self.store.replace(replace).await {
                Ok(task) => return Ok(task),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let reason = Reason::new("too many changes to one task at once");
        Err(StoreError::Unavailable(reason).into())
    }

    /// Sends progress to the nodes that joined.
    pub(super) fn publish_progress(&self, id: TaskId, mut progress: Progress) {
        let cut = |text: Arc<str>| self.sizes.cut_status(&text).into();
        progress.message = progress.message.map(cut);
        self.store.publish_progress(self.node, id, &progress);
    }
}

/// The whole task, unless it has expired.
pub(super) async fn load(
    store: &dyn Store,
    id: TaskId,
    now: Timestamp,
) -> Result<Committed<Task>, EngineError> {
    let found = store.load(&Scope::AnyTask, id).await?;
    let task = found.ok_or(EngineError::NotFound)?;
    if task.is_expired(now) {
        Err(EngineError::Expired)
    } else {
        Ok(task)
    }
}
