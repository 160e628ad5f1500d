//! Deadlines: one loop sleeps until the next one, whatever the number of tasks.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::Timestamp;
use tokio::sync::Notify;

use super::change::ChangeError;
use super::{EnginePhase, Inner, audit};
use crate::id::{Revision, Scope, TaskId};
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::runtime::sleep;
use crate::store::{Snapshot, StoreError};
use crate::transition::{Command, Next};

/// Wakes the loop when a deadline is earlier than the one it sleeps for.
#[derive(Debug)]
pub(crate) struct DeadlineAlarm {
    next: AtomicU64,
    changed: Notify,
}

impl Default for DeadlineAlarm {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(u64::MAX),
            changed: Notify::new(),
        }
    }
}

impl DeadlineAlarm {
    /// Schedules a deadline at `moment`.
    pub(crate) fn schedule(&self, moment: Timestamp) {
        if moment.0 < self.next.load(Ordering::Acquire) {
            self.changed.notify_one();
        }
    }
}

impl Inner {
    /// Handles deadlines until the engine closes.
    pub(crate) async fn run_deadline_loop(self: Arc<Self>) {
        loop {
            // From here on every committed deadline notifies, so the check below misses none.
            self.alarm.next.store(u64::MAX, Ordering::Release);
            let pause = match self.handle_due_tasks().await {
                Ok(None) => continue,
                Ok(Some(next)) => {
                    self.alarm.next.store(next.0, Ordering::Release);
                    Duration::from_millis(next.since(self.now())).min(MAX_SLEEP)
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot handle deadlines; retrying");
                    // The alarm is ignored: each failed write schedules its deadline again.
                    tokio::select! {
                        biased;
                        () = self.reached(EnginePhase::Closed) => return,
                        () = sleep(STORE_RETRY_DELAY) => {}
                    }
                    continue;
                }
            };
            tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return,
                () = self.alarm.changed.notified() => {}
                () = sleep(pause.max(MIN_SLEEP)) => {}
            }
        }
    }

    /// Handles one batch. Returns when to continue, or `None` to continue immediately.
    async fn handle_due_tasks(&self) -> Result<Option<Timestamp>, StoreError> {
        let now = self.now();
        let due = self.store.due(now, MAX_DUE_TASKS).await?;
        if due.tasks.is_empty() {
            return Ok(Some(due.next.unwrap_or(Timestamp(u64::MAX))));
        }
        let mut over = Vec::new();
        let mut handled = 0;
        for (id, _) in due.tasks {
            match self.store.get(&Scope::AnyTask, id).await? {
                None => {}
                Some(Snapshot::Ended(summary)) if now >= summary.expires() => {
                    over.push((id, summary.revision));
                }
                Some(Snapshot::Ended(_)) => {}
                Some(Snapshot::Open(task)) => match task.shared().apply(Command::Due, now) {
                    Ok(step) if step.next == Next::Removed => {
                        // A1-23: waiters learn that the task has expired. Its work is stopped when
                        // the task is removed, because an extension that was requested in time may
                        // be committed first.
                        self.subscribers.end_without_outcome(id);
                        over.push((id, task.revision));
                    }
                    Ok(_) => match self.commit(&task, [Command::Due]).await {
                        Ok(_) => handled += 1,
                        Err(
                            ChangeError::Store(StoreError::Conflict { .. })
                            | ChangeError::Refused(_),
                        ) => {}
                        Err(ChangeError::Store(error)) => return Err(error),
                    },
                    Err(_) => {}
                },
            }
        }
        handled += self.remove(over).await?;
        // If nothing could be done, another node handles the tasks: check again shortly.
        Ok((handled == 0).then(|| now.plus(MIN_SLEEP.as_millis() as u64)))
    }

    /// Removes expired tasks and returns their number.
    pub(crate) async fn remove(&self, over: Vec<(TaskId, Revision)>) -> Result<usize, StoreError> {
        if over.is_empty() {
            return Ok(0);
        }
        let ids: Vec<_> = over.iter().map(|(id, _)| *id).collect();
        let removed = self.store.remove(self.node, over).await;
        match &removed {
            Ok(removed) => {
                self.metrics.expired(removed.len());
                for id in removed {
                    audit::expired(*id);
                    self.task_removed(*id);
                }
            }
            Err(error) if error.is_transient() => {
                ids.into_iter().for_each(|id| self.reconcile_later(id));
            }
            Err(_) => {}
        }
        removed.map(|removed| removed.len())
    }

    /// Performs the effects of a removal: waiters are answered, the work is stopped.
    pub(crate) fn task_removed(&self, id: TaskId) {
        self.subscribers.end_without_outcome(id);
        self.stop(id);
        self.changes.task(id);
    }
}

/// The maximum number of tasks in a batch.
const MAX_DUE_TASKS: usize = 256;

/// The longest sleep, because a clock may jump and another node may add a deadline.
const MAX_SLEEP: Duration = Duration::from_secs(5);

const MIN_SLEEP: Duration = Duration::from_millis(1);

const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);
