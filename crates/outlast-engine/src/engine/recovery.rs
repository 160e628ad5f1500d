//! What becomes of tasks whose executor died: found again, run again, or ended with a plain word (P4, P5).

use std::sync::Arc;

use super::call_state::{Cell, Stage};
use super::change::Failed;
use super::run::{Begin, Pause, outcome_unknown};
use super::{Inner, Phase, Runner, audit};
use crate::id::Scope;
use crate::origin::Retry;
use crate::outcome::Outcome;
use crate::runtime::{joined, spawn};
use crate::store::{Committed, Snapshot, StoreError};
use crate::task::Task;
use crate::transition::{Command, Refused, Takeover};

/// What became of tasks whose executor was gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Their runners found the work again.
    pub reattached: usize,
    /// They run again from the beginning.
    pub rerun: usize,
    /// They were to be cancelled, and are.
    pub cancelled: usize,
    /// They ended with the error that says that the outcome is unknown.
    pub unknown: usize,
}

/// How long recovery waits for a store that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A few seconds: somebody waits for the engine to open.
    Short,
    /// As long as the engine lives.
    Long,
}

enum Fate {
    Takeover(Arc<dyn Runner>, Takeover),
    Cancelled,
    Unknown,
}

impl Inner {
    /// Settles every task whose executor is gone. When this resolves, each has a living executor or
    /// has ended.
    pub(crate) async fn recover(
        self: &Arc<Self>,
        patience: Patience,
    ) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let mut unsettled = Vec::new();
        let mut pause = Pause::default();
        let mut failures = 0;
        loop {
            let claimed = self.store.claim(self.node, PORTION).await;
            let (mut orphans, mut failure) = match claimed {
                Ok(orphans) => (orphans, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            orphans.append(&mut unsettled);
            if orphans.is_empty() && failure.is_none() {
                self.meter.recovered(recovered);
                return Ok(recovered);
            }
            // All at once, so that they share their commits; and all to the end, so that none is left
            // claimed and idle.
            let settling = orphans.into_iter().map(|task| {
                let inner = self.clone();
                spawn(async move { (inner.settle(task.clone()).await, task) })
            });
            for settled in settling.collect::<Vec<_>>() {
                match joined(settled).await {
                    (Ok(fate), _) => recovered.count(fate.as_ref()),
                    (Err(error), task) => {
                        unsettled.push(task);
                        failure = Some(error);
                    }
                }
            }
            if let Some(error) = failure {
                failures += 1;
                let enough = patience == Patience::Short && failures > SHORT;
                if enough || !error.is_passing() || self.phase() == Phase::Closed {
                    return Err(error);
                }
                tracing::warn!(%error, "recovery waits for the store");
                pause.rest().await;
            }
        }
    }

    async fn settle(self: Arc<Self>, task: Committed<Task>) -> Result<Option<Fate>, StoreError> {
        let mut task = task;
        loop {
            let fate = self.fate(&task);
            let attempt = task.attempt;
            let command = match &fate {
                Fate::Takeover(_, how) => Command::Claim {
                    executor: self.node,
                    how: *how,
                },
                Fate::Cancelled => Command::End {
                    attempt,
                    outcome: Outcome::Cancelled,
                    message: None,
                },
                Fate::Unknown => Command::End {
                    attempt,
                    outcome: outcome_unknown(),
                    message: None,
                },
            };
            match self.commit(&task, [command]).await {
                Ok(claimed) => {
                    if let Fate::Takeover(runner, how) = &fate {
                        self.take_over(claimed, runner.clone(), *how).await;
                    }
                    return Ok(Some(fate));
                }
                // Its time is over: expiry removes it. Or it ended after it was offered.
                Err(Failed::Refused(Refused::Expired | Refused::AlreadyEnded)) => return Ok(None),
                Err(Failed::Refused(_) | Failed::Store(StoreError::Conflict { .. })) => {}
                Err(Failed::Store(error)) => return Err(error),
            }
            match self.store.get(&Scope::Anyone, task.id).await? {
                Some(Snapshot::Open(changed)) if changed.executor == task.executor => {
                    task = changed;
                }
                Some(Snapshot::Open(ours)) if ours.executor == self.node => {
                    // Taken over by this engine, and the answer was lost.
                    let Fate::Takeover(runner, how) = &fate else {
                        return Ok(None);
                    };
                    self.take_over(ours, runner.clone(), *how).await;
                    return Ok(Some(fate));
                }
                _ => return Ok(None),
            }
        }
    }

    fn fate(&self, task: &Task) -> Fate {
        if task.cancel.is_some() {
            return Fate::Cancelled;
        }
        let Some(runner) = self.runner_at_recovery(&task.origin.runner) else {
            return Fate::Unknown;
        };
        if task.handle.is_some() && runner.reattaches() {
            return Fate::Takeover(runner, Takeover::Reattach);
        }
        let again = task.origin.retry == Retry::Rerun && task.attempt.0 < self.policy.max_attempts;
        if again {
            Fate::Takeover(runner, Takeover::Rerun)
        } else {
            Fate::Unknown
        }
    }

    async fn take_over(
        self: &Arc<Self>,
        task: Committed<Task>,
        runner: Arc<dyn Runner>,
        how: Takeover,
    ) {
        audit::taken_over(&task, how);
        let begin = match (how, &task.handle) {
            (Takeover::Reattach, Some(handle)) => Begin::Reattach(handle.clone()),
            _ => Begin::Run,
        };
        let cell = Arc::new(Cell::new(&task, Stage::Stored(task.clone()), None));
        self.calls.add(cell.clone());
        // Whoever changed the task since it was claimed did not find the call here.
        if self.react(cell.id).await.is_err() {
            self.doubt(cell.id);
        }
        spawn(self.clone().drive(cell, runner, begin));
    }
}

impl Recovered {
    fn count(&mut self, fate: Option<&Fate>) {
        match fate {
            Some(Fate::Takeover(_, Takeover::Reattach)) => self.reattached += 1,
            Some(Fate::Takeover(_, Takeover::Rerun)) => self.rerun += 1,
            Some(Fate::Cancelled) => self.cancelled += 1,
            Some(Fate::Unknown) => self.unknown += 1,
            None => {}
        }
    }
}

/// How many tasks are taken over at a time.
const PORTION: usize = 1_024;

/// How many failures a short patience bears.
const SHORT: u32 = 6;
