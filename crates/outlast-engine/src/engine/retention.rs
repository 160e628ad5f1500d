//! Retention: ended tasks that are deleted before their TTL ends, by age, number and size.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::{Raw, Timestamp};

use super::{Engine, EngineError, EnginePhase, Inner, audit};
use crate::id::{Revision, Scope, TaskId};
use crate::runtime::sleep;
use crate::store::{Filter, Snapshot, Status, StoreError};

/// The limits of ended tasks, for each way to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Tasks that ended with a result.
    pub completed: RetentionLimits,
    /// Tasks that ended with an error, or with a result flagged `isError`.
    pub failed: RetentionLimits,
    /// Cancelled tasks.
    pub cancelled: RetentionLimits,
}

crate::option_setters! { Retention:
    set with_completed(completed: RetentionLimits);
    set with_failed(failed: RetentionLimits);
    set with_cancelled(cancelled: RetentionLimits);
}

/// The limits of tasks that ended in one way. The newest tasks, by their creation, are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetentionLimits {
    /// How long after its end a task is kept.
    pub age: Option<Duration>,
    /// How many tasks are kept.
    pub count: Option<u64>,
    /// How many bytes the results or errors of the kept tasks have together.
    pub bytes: Option<u64>,
}

crate::option_setters! { RetentionLimits:
    maybe with_age(age: Duration);
    maybe with_count(count: u64);
    maybe with_bytes(bytes: u64);
}

/// Finds the tasks that exceed a [`Retention`]. It remembers the sizes of bodies, which are read
/// once.
#[derive(Default)]
struct RetentionScan {
    sizes: HashMap<TaskId, u64>,
}

/// Tasks that exceed a [`Retention`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcessTasks {
    /// The tasks, newest first.
    pub tasks: Vec<(TaskId, Revision)>,
    /// Whether there are more of them.
    pub more: bool,
}

impl Retention {
    /// Whether a limit is set.
    pub fn is_limited(&self) -> bool {
        *self != Self::default()
    }

    fn of(&self, status: Status) -> Option<(usize, &RetentionLimits)> {
        match status {
            Status::Completed => Some((0, &self.completed)),
            Status::Failed => Some((1, &self.failed)),
            Status::Cancelled => Some((2, &self.cancelled)),
            Status::Working | Status::InputRequired => None,
        }
    }
}

/// What was kept of one status so far.
#[derive(Clone, Copy, Default)]
struct RetainedSoFar {
    count: u64,
    bytes: u64,
}

impl RetentionLimits {
    fn exceeded(&self, ended: Timestamp, now: Timestamp, kept: RetainedSoFar) -> bool {
        self.age
            .is_some_and(|age| u128::from(now.since(ended)) > age.as_millis())
            || self.count.is_some_and(|count| kept.count > count)
            || self.bytes.is_some_and(|bytes| kept.bytes > bytes)
    }
}

impl Engine {
    /// Finds up to `limit` ended tasks that exceed `retention`, and deletes them unless
    /// `is_dry_run`.
    pub async fn prune(
        &self,
        retention: &Retention,
        limit: usize,
        is_dry_run: bool,
    ) -> Result<ExcessTasks, EngineError> {
        self.check_ready()?;
        let mut scan = RetentionScan::default();
        let excess = scan.find(&self.inner, retention, limit).await?;
        if !is_dry_run {
            self.inner.delete_excess(&excess).await?;
        }
        Ok(excess)
    }
}

impl RetentionScan {
    async fn find(
        &mut self,
        inner: &Inner,
        retention: &Retention,
        limit: usize,
    ) -> Result<ExcessTasks, StoreError> {
        let now = inner.now();
        let filter = Filter {
            statuses: [Status::Completed, Status::Failed, Status::Cancelled]
                .into_iter()
                .collect(),
            ..Filter::default()
        };
        let mut kept = [RetainedSoFar::default(); 3];
        let mut seen = HashMap::new();
        let mut excess = ExcessTasks::default();
        let mut after = None;
        loop {
            let page = inner.store.search(&filter, after, PAGE_TASKS).await?;
            for task in page.tasks {
                let Snapshot::Ended(summary) = &task else {
                    continue;
                };
                let Some((at, limits)) = retention.of(Status::of(&task)) else {
                    continue;
                };
                let mut with_this = kept[at];
                with_this.count += 1;
                if limits.bytes.is_some() {
                    let size = self.size(inner, summary.id).await?;
                    seen.insert(summary.id, size);
                    with_this.bytes = with_this.bytes.saturating_add(size);
                }
                if !limits.exceeded(summary.updated, now, with_this) {
                    kept[at] = with_this;
                } else if excess.tasks.len() == limit {
                    excess.more = true;
                    return Ok(excess);
                } else {
                    excess.tasks.push((summary.id, summary.revision));
                }
            }
            after = page.next;
            if after.is_none() {
                // Sizes of removed tasks are forgotten.
                self.sizes = seen;
                return Ok(excess);
            }
        }
    }

    async fn size(&self, inner: &Inner, id: TaskId) -> Result<u64, StoreError> {
        if let Some(size) = self.sizes.get(&id) {
            return Ok(*size);
        }
        let body = inner.store.body(&Scope::AnyTask, id).await?;
        Ok(body
            .as_ref()
            .map_or(0, |body: &Raw| body.as_str().len() as u64))
    }
}

impl Inner {
    /// Deletes excess tasks, unless they have changed.
    async fn delete_excess(&self, excess: &ExcessTasks) -> Result<(), StoreError> {
        for batch in excess.tasks.chunks(MAX_REMOVED_TASKS) {
            let removed = self.store.remove(self.node, batch.to_vec()).await?;
            for id in removed {
                audit::pruned(id);
                self.task_removed(id);
            }
        }
        Ok(())
    }

    /// Enforces `retention` until the engine closes.
    pub(crate) async fn run_retention(self: Arc<Self>, retention: Retention) {
        let mut scan = RetentionScan::default();
        loop {
            let found = scan.find(&self, &retention, MAX_EXCESS_TASKS).await;
            let done = match found {
                Ok(excess) => self.delete_excess(&excess).await.map(|()| excess.more),
                Err(error) => Err(error),
            };
            let pause = match done {
                Ok(true) => MIN_PAUSE,
                Ok(false) => RETENTION_INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "cannot delete tasks by their retention; retrying");
                    RETENTION_INTERVAL
                }
            };
            tokio::select! {
                biased;
                () = self.reached(EnginePhase::Closed) => return,
                () = sleep(pause) => {}
            }
        }
    }
}

/// How many tasks are read at once.
const PAGE_TASKS: usize = 256;

/// How many tasks are removed in one transaction.
const MAX_REMOVED_TASKS: usize = 256;

/// How many excess tasks are found at once.
const MAX_EXCESS_TASKS: usize = 4_096;

/// How often the limits are checked.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

const MIN_PAUSE: Duration = Duration::from_millis(10);
