//! Runs the request of an ended task again, as a new task.

use std::time::Duration;

use super::{CreatedTask, Engine, EngineError, NewCall};
use crate::id::{Scope, TaskId};
use crate::origin::Origin;
use crate::store::Committed;
use crate::task::Task;

impl Engine {
    /// Creates a task of the same owner that runs the request of an ended task again. Returns
    /// `None` if the task has not ended. The new task has no request key and no progress token,
    /// because both belong to the first request.
    ///
    /// The tool may have an effect twice: callers ask first, unless the request's
    /// [`RetryClass`](crate::RetryClass) allows a repetition.
    pub async fn rerun(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<Committed<Task>>, EngineError> {
        let ended = self.load(scope, id).await?;
        if ended.state.ending().is_none() {
            return Ok(None);
        }
        let origin = Origin {
            progress_token: None,
            ..Origin::clone(&ended.origin)
        };
        let mut call = NewCall::new(ended.owner.clone(), origin);
        call.ttl = Some(Duration::from_millis(ended.lifetime.granted_ttl_ms));
        match self.create(call).await? {
            CreatedTask::New(task) | CreatedTask::Existing(task) => Ok(Some(task)),
        }
    }
}
