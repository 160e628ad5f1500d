//! Recovery of tasks whose executor was lost: re-attached, run again, or ended with an unknown
//! outcome (P4, P5).

use std::sync::Arc;

use super::call_state::{CallStage, CallState};
use super::change::ChangeError;
use super::run::{RetryDelay, StartMode, outcome_unknown};
use super::{EnginePhase, Inner, Runner, audit};
use crate::id::Scope;
use crate::origin::RetryClass;
use crate::outcome::Outcome;
use crate::runtime::{join, spawn};
use crate::store::{Committed, Snapshot, StoreError};
use crate::task::Task;
use crate::transition::{Command, Refused, Takeover};

/// The number of recovered tasks, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCounts {
    /// Their runners re-attached to the work.
    pub reattached: usize,
    /// They run again from the beginning.
    pub rerun: usize,
    /// Their cancellation was requested, and they are cancelled.
    pub cancelled: usize,
    /// They ended with the error for an unknown outcome.
    pub unknown: usize,
}

/// How long recovery retries while the store cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryLimit {
    /// A few seconds, because the engine is waiting to open.
    AtStart,
    /// Until the engine closes.
    Unlimited,
}

enum RecoveryAction {
    Takeover(Arc<dyn Runner>, Takeover),
    Cancelled,
    Unknown,
}

impl Inner {
    /// Recovers every task whose executor was lost. When this resolves, each has a live executor or
    /// has ended.
    pub(crate) async fn recover(
        self: &Arc<Self>,
        retry_limit: RetryLimit,
    ) -> Result<RecoveryCounts, StoreError> {
        let mut recovered = RecoveryCounts::default();
        let mut unsettled = Vec::new();
        let mut delay = RetryDelay::default();
        let mut failures = 0;
        loop {
            let claimed = self.store.claim(self.node, MAX_CLAIMED_TASKS).await;
            let (mut orphans, mut failure) = match claimed {
                Ok(orphans) => (orphans, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            orphans.append(&mut unsettled);
            if orphans.is_empty() && failure.is_none() {
                self.metrics.recovered(recovered);
                return Ok(recovered);
            }
            // All at once, so that they share their commits; and all to the end, so that none stays
            // claimed without running.
            let settling = orphans.into_iter().map(|task| {
                let inner = self.clone();
                spawn(async move { (inner.settle(task.clone()).await, task) })
            });
            for ended_task in settling.collect::<Vec<_>>() {
                match join(ended_task).await {
                    (Ok(action), _) => recovered.count(action.as_ref()),
                    (Err(error), task) => {
                        unsettled.push(task);
                        failure = Some(error);
                    }
                }
            }
            if let Some(error) = failure {
                failures += 1;
                let enough = retry_limit == RetryLimit::AtStart && failures > MAX_FAILURES_AT_START;
                if enough || !error.is_transient() || self.phase() == EnginePhase::Closed {
                    return Err(error);
                }
                tracing::warn!(%error, "cannot recover tasks; retrying");
                delay.wait(&*self.ids).await;
            }
        }
    }

    async fn settle(
        self: Arc<Self>,
        task: Committed<Task>,
    ) -> Result<Option<RecoveryAction>, StoreError> {
        let mut task = task;
        loop {
            let action = self.action(&task);
            let attempt = task.attempt;
            let command = match &action {
                RecoveryAction::Takeover(_, how) => Command::Claim {
                    executor: self.node,
                    how: *how,
                },
                RecoveryAction::Cancelled => Command::End {
                    attempt,
                    outcome: Outcome::Cancelled,
                    message: None,
                },
                RecoveryAction::Unknown => Command::End {
                    attempt,
                    outcome: outcome_unknown(),
                    message: None,
                },
            };
            match self.commit(&task, [command]).await {
                Ok(claimed) => {
                    if let RecoveryAction::Takeover(runner, how) = &action {
                        self.take_over(claimed, runner.clone(), *how).await;
                    }
                    return Ok(Some(action));
                }
                // The task has expired, and the deadline loop removes it. Or it ended after it was
                // offered.
                Err(ChangeError::Refused(Refused::Expired | Refused::AlreadyEnded(_))) => {
                    return Ok(None);
                }
                Err(ChangeError::Refused(_) | ChangeError::Store(StoreError::Conflict { .. })) => {}
                Err(ChangeError::Store(error)) => return Err(error),
            }
            match self.store.get(&Scope::AnyTask, task.id).await? {
                Some(Snapshot::Open(changed)) if changed.executor == task.executor => {
                    task = changed;
                }
                Some(Snapshot::Open(ours)) if ours.executor == self.node => {
                    // This engine has taken it over, and the reply was lost.
                    let RecoveryAction::Takeover(runner, how) = &action else {
                        return Ok(None);
                    };
                    self.take_over(ours, runner.clone(), *how).await;
                    return Ok(Some(action));
                }
                _ => return Ok(None),
            }
        }
    }

    fn action(&self, task: &Task) -> RecoveryAction {
        if task.cancel.is_some() {
            return RecoveryAction::Cancelled;
        }
        let Some(runner) = self.runner_at_recovery(&task.origin.runner) else {
            return RecoveryAction::Unknown;
        };
        if task.resume_state.is_some() && runner.can_reattach() {
            return RecoveryAction::Takeover(runner, Takeover::Reattach);
        }
        let again =
            task.origin.retry == RetryClass::Rerun && task.attempt.0 < self.policy.max_attempts;
        if again {
            RecoveryAction::Takeover(runner, Takeover::Rerun)
        } else {
            RecoveryAction::Unknown
        }
    }

    async fn take_over(
        self: &Arc<Self>,
        task: Committed<Task>,
        runner: Arc<dyn Runner>,
        how: Takeover,
    ) {
        audit::taken_over(&task, how);
        let begin = match (how, &task.resume_state) {
            (Takeover::Reattach, Some(handle)) => StartMode::Reattach(handle.clone()),
            _ => StartMode::Run,
        };
        let call_state = Arc::new(CallState::new(&task, CallStage::Stored(task.clone()), None));
        self.calls.add(call_state.clone());
        // A change that was made after the claim did not find the call here.
        if self.apply_stored_state(call_state.id).await.is_err() {
            self.reconcile_later(call_state.id);
        }
        spawn(self.clone().run_call(call_state, runner, begin));
    }
}

impl RecoveryCounts {
    fn count(&mut self, action: Option<&RecoveryAction>) {
        match action {
            Some(RecoveryAction::Takeover(_, Takeover::Reattach)) => self.reattached += 1,
            Some(RecoveryAction::Takeover(_, Takeover::Rerun)) => self.rerun += 1,
            Some(RecoveryAction::Cancelled) => self.cancelled += 1,
            Some(RecoveryAction::Unknown) => self.unknown += 1,
            None => {}
        }
    }
}

/// The maximum number of tasks that are claimed at once.
const MAX_CLAIMED_TASKS: usize = 1_024;

/// The maximum number of failures while the engine starts.
const MAX_FAILURES_AT_START: u32 = 6;
