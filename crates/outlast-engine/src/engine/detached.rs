//! Work that other code does: the task has no executor, and is changed by its id and attempt.
//!
//! Recovery never claims such a task, and a shutdown does not wait for it. It ends by
//! [`DetachedTask::end`], by a cancellation, or at its run limit; exactly one end is stored.

use std::sync::Arc;
use std::time::Duration;

use super::store_access::{StoreAccess, load};
use super::{Actor, Engine, EngineError, EnginePhase, Inner, Progress};
use crate::id::{Attempt, InputKey, Scope, TaskId};
use crate::input::InputRequest;
use crate::outcome::Outcome;
use crate::policy::SizeLimits;
use crate::runtime::run_to_completion;
use crate::store::{Committed, Store, StoreError};
use crate::task::Task;
use crate::transition::{Command, Refused};

/// A task whose work is done by other code.
#[derive(Clone)]
pub struct DetachedTask {
    access: Access,
    id: TaskId,
    attempt: Attempt,
}

/// How a detached task is read and written.
#[derive(Clone)]
enum Access {
    Engine(Arc<Inner>),
    Store(Arc<StoreAccess>),
}

impl Engine {
    /// The detached task with this id. Operations with another attempt than the task has are
    /// refused.
    pub fn detached(&self, id: TaskId, attempt: Attempt) -> DetachedTask {
        DetachedTask::new(self.inner.clone(), id, attempt)
    }
}

impl DetachedTask {
    pub(super) fn new(inner: Arc<Inner>, id: TaskId, attempt: Attempt) -> Self {
        let access = Access::Engine(inner);
        Self {
            access,
            id,
            attempt,
        }
    }

    /// The detached task with this id, through the store alone: for a process that shares the store
    /// with the engines. It does not join the store, and the default size limits apply. Engines on
    /// the store receive each change like one of another node.
    pub fn in_store(store: Arc<dyn Store>, id: TaskId, attempt: Attempt) -> Self {
        let access = Access::Store(Arc::new(StoreAccess::new(store)));
        Self {
            access,
            id,
            attempt,
        }
    }

    /// The id of the task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The attempt of the work.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The whole task.
    pub async fn load(&self) -> Result<Committed<Task>, EngineError> {
        match &self.access {
            Access::Engine(inner) => {
                if inner.phase() == EnginePhase::Starting {
                    return Err(StoreError::Starting.into());
                }
                load(&*inner.store, self.id, inner.now()).await
            }
            Access::Store(store) => store.load(self.id).await,
        }
    }

    /// Ends the task. Only the first end of a task succeeds.
    pub async fn end(&self, outcome: Outcome) -> Result<Committed<Task>, EngineError> {
        let outcome = self.sizes().admit(outcome);
        self.change(Command::End {
            attempt: self.attempt,
            outcome,
            message: None,
        })
        .await
    }

    /// Sets the status text. The same text again changes nothing.
    pub async fn status(&self, message: &str) -> Result<(), EngineError> {
        let message: Arc<str> = self.sizes().cut_status(message).into();
        let change = self.change(Command::Status {
            attempt: self.attempt,
            message,
        });
        unless_unchanged(change.await)
    }

    /// Publishes progress to the watchers. It is not stored.
    pub fn progress(&self, progress: &Progress) {
        match &self.access {
            Access::Engine(inner) => inner.publish_progress(self.id, progress.clone(), true),
            Access::Store(store) => store.publish_progress(self.id, progress.clone()),
        }
    }

    /// Makes an input request. The task awaits input until the response, which stays stored with
    /// the task, or until the request is withdrawn.
    pub async fn request_input(
        &self,
        key: InputKey,
        request: InputRequest,
    ) -> Result<(), EngineError> {
        let sizes = self.sizes();
        sizes.check(
            "the key of the input request",
            key.as_str().len(),
            sizes.name_bytes,
            "name_bytes",
        )?;
        sizes.check(
            "the input request",
            request.size(),
            sizes.payload_bytes,
            "payload_bytes",
        )?;
        let limit = sizes.input_requests;
        let command = Command::RequestInput {
            attempt: self.attempt,
            key,
            request,
            limit,
        };
        self.change(command).await.map(drop)
    }

    /// Withdraws an input request.
    pub async fn withdraw_input(&self, key: InputKey) -> Result<(), EngineError> {
        let attempt = self.attempt;
        self.change(Command::WithdrawInput { attempt, key })
            .await
            .map(drop)
    }

    /// Drops a stored input response that was used.
    pub async fn confirm_input(&self, key: InputKey) -> Result<(), EngineError> {
        let attempt = self.attempt;
        self.change(Command::ConfirmInput { attempt, key })
            .await
            .map(drop)
    }

    /// The work is alive: the task ends after `limit`, unless another heartbeat follows. Time spent
    /// awaiting input does not count.
    pub async fn heartbeat(&self, limit: Duration) -> Result<(), EngineError> {
        let change = self.change(Command::Heartbeat {
            attempt: self.attempt,
            limit_ms: millis(limit),
        });
        unless_unchanged(change.await)
    }

    async fn change(&self, command: Command) -> Result<Committed<Task>, EngineError> {
        let id = self.id;
        match self.access.clone() {
            Access::Engine(inner) => {
                if inner.phase() == EnginePhase::Starting {
                    return Err(StoreError::Starting.into());
                }
                let actor = Actor::from(Scope::AnyTask);
                run_to_completion(async move { inner.change(&actor, id, command).await }).await
            }
            Access::Store(store) => {
                run_to_completion(async move { store.change(id, command).await }).await
            }
        }
    }

    fn sizes(&self) -> &SizeLimits {
        match &self.access {
            Access::Engine(inner) => &inner.policy.sizes,
            Access::Store(store) => &store.sizes,
        }
    }
}

fn unless_unchanged(changed: Result<Committed<Task>, EngineError>) -> Result<(), EngineError> {
    match changed {
        Ok(_) | Err(EngineError::Refused(Refused::Unchanged)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
