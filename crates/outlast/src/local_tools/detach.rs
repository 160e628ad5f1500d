//! Gives the work of a tool to another program.

use std::time::Duration;

use outlast_engine::{EngineError, Outcome};

use super::ToolContext;
use crate::detached::{CompletionHandle, Secret};

/// Why a tool could not give its work away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetachError {
    /// The call is not a task.
    #[error("the call is not a task; declare the tool with `.task(TaskSupport::Required)`")]
    NotATask,
    /// The tool has done so before.
    #[error("the work was given away before")]
    AlreadyDetached,
    /// It could not be stored.
    #[error(transparent)]
    Engine(EngineError),
}

impl ToolContext {
    /// Gives the work to another program: a queue, a batch system, a person. See
    /// [`detached`](crate::detached).
    ///
    /// The task fails `limit` from now, unless it ends before or a heartbeat moves that. Give the
    /// handle away, then return: a result of the tool is ignored from now on, and a failure ends
    /// the task.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use outlast::prelude::*;
    ///
    /// # async fn push(job: String) -> Result<(), String> { drop(job); Ok(()) }
    /// let render = Tool::new("render", "Renders elsewhere", |_, cx| async move {
    ///     let handle = cx.detach(Duration::from_secs(3_600)).await?;
    ///     push(format!(r#"{{"handle":"{handle}"}}"#)).await?;
    ///     Ok(text("queued"))
    /// });
    /// let render = render.task(TaskSupport::Required);
    /// ```
    pub async fn detach(&self, limit: Duration) -> Result<CompletionHandle, DetachError> {
        if self.detached.get().is_some() {
            return Err(DetachError::AlreadyDetached);
        }
        let secret = Secret::random();
        let detached = self.call.detach(secret.stored(), Some(limit)).await;
        let task = detached.map_err(|error| match error {
            EngineError::NotATask => DetachError::NotATask,
            error => DetachError::Engine(error),
        })?;
        let handle = CompletionHandle::new(task.id(), task.attempt(), secret);
        // A second caller lost the attempt in the engine.
        let _ = self.detached.set(task);
        Ok(handle)
    }

    /// The outcome for the engine. It drops the one of a detached tool, so that a failure is stored
    /// here.
    pub(super) async fn after_detach(&self, outcome: Outcome) -> Outcome {
        let failed = !matches!(outcome, Outcome::Result(_));
        if let Some(task) = self.detached.get().filter(|_| failed)
            && let Err(error) = task.end(outcome.clone()).await
        {
            tracing::info!(task = %task.id(), %error, "the failure of a detached tool is dropped");
        }
        outcome
    }
}
