//! The commands of a caller: cancel a task, provide input, extend its TTL.

use std::collections::BTreeMap;

use super::{Actor, Engine, EngineError, audit};
use crate::id::{InputKey, Scope, TaskId};
use crate::input::InputResponse;
use crate::policy::millis;
use crate::runtime::run_to_completion;
use crate::store::Committed;
use crate::task::Task;
use crate::transition::{Command, Refused};

impl Engine {
    /// Ends a task as cancelled, whatever its work does (V1-CANCEL-3).
    pub async fn cancel_now(
        &self,
        actor: impl Into<Actor>,
        id: TaskId,
    ) -> Result<Committed<Task>, EngineError> {
        let actor = actor.into();
        let cancelled = self.change(actor.clone(), id, Command::CancelNow).await?;
        audit::cancelled(&cancelled, &actor);
        Ok(cancelled)
    }

    /// Requests that the work of a task stops. The request is durable when this resolves
    /// (V2-CANCEL-5).
    ///
    /// A task that has ended, or whose cancellation was requested before, is unchanged.
    pub async fn request_cancel(
        &self,
        actor: impl Into<Actor>,
        id: TaskId,
    ) -> Result<(), EngineError> {
        let actor = actor.into();
        let deadline = self
            .inner
            .now()
            .plus(millis(self.inner.policy.cancel_timeout));
        match self
            .change(actor.clone(), id, Command::RequestCancel { deadline })
            .await
        {
            Ok(task) => {
                audit::cancelled(&task, &actor);
                Ok(())
            }
            Err(EngineError::Refused(Refused::AlreadyEnded(_) | Refused::Unchanged)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Provides input responses. They are durable when this resolves (V2-UPD-11).
    ///
    /// Responses to input requests that are not outstanding are ignored (V2-UPD-12).
    pub async fn provide_input(
        &self,
        actor: impl Into<Actor>,
        id: TaskId,
        responses: BTreeMap<InputKey, InputResponse>,
    ) -> Result<(), EngineError> {
        let sizes = &self.inner.policy.sizes;
        for response in responses.values() {
            sizes.check(
                "the input response",
                response.size(),
                sizes.payload_bytes,
                "payload_bytes",
            )?;
        }
        match self
            .change(actor.into(), id, Command::ProvideInput(responses))
            .await
        {
            Ok(_) => Ok(()),
            Err(EngineError::Refused(Refused::AlreadyEnded(_) | Refused::NotOutstanding)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sets the TTL to `ttl` milliseconds after the creation, within the limit of the policy.
    pub async fn extend(
        &self,
        scope: &Scope,
        id: TaskId,
        ttl: u64,
    ) -> Result<Committed<Task>, EngineError> {
        let ttl = ttl.min(millis(self.inner.policy.max_ttl));
        self.change(scope.into(), id, Command::Extend { ttl }).await
    }

    async fn change(
        &self,
        actor: Actor,
        id: TaskId,
        command: Command,
    ) -> Result<Committed<Task>, EngineError> {
        self.check_ready()?;
        let inner = self.inner.clone();
        run_to_completion(async move { inner.change(&actor, id, command).await }).await
    }
}
