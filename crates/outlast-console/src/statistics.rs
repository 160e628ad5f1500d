//! Numbers about the newest tasks, from the store.

use outlast_engine::Scope;
use outlast_engine::store::{Filter, Snapshot, Status};
use outlast_wire::Timestamp;

use crate::console::App;
use crate::error::ConsoleError;
use crate::search::{MAX_COUNTED_TASKS, PAGE_SIZE};
use crate::task_row::TaskRow;

/// The length of the plots over time, in minutes.
pub(crate) const PLOT_MINUTES: usize = 60;

/// The classes of durations: their upper bounds in milliseconds, and their labels.
pub(crate) const CLASSES: [(u64, &str); 6] = [
    (1_000, "< 1 s"),
    (10_000, "< 10 s"),
    (60_000, "< 1 min"),
    (600_000, "< 10 min"),
    (3_600_000, "< 1 h"),
    (u64::MAX, "≥ 1 h"),
];

/// Numbers about the newest tasks that match a filter.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    counts: [u64; Status::ALL.len()],
    /// The number of tasks that were read.
    pub(crate) examined: usize,
    /// Whether these are all.
    pub(crate) is_complete: bool,
    /// Per minute, the oldest minute first.
    pub(crate) created: Vec<u32>,
    pub(crate) ended: Vec<u32>,
    /// The number of ended tasks per class.
    pub(crate) durations: [u32; CLASSES.len()],
    /// The number of tasks that waited for input, per class.
    pub(crate) waits: [u32; CLASSES.len()],
    /// The number of tasks whose waits were read.
    pub(crate) waits_examined: usize,
    /// The newest failed tasks.
    pub(crate) failures: Vec<TaskRow>,
}

impl Statistics {
    /// Reads the tasks that match.
    pub(crate) async fn collect(
        app: &App,
        filter: &Filter,
        now: Timestamp,
    ) -> Result<Self, ConsoleError> {
        let mut found = Self {
            created: vec![0; PLOT_MINUTES],
            ended: vec![0; PLOT_MINUTES],
            ..Self::default()
        };
        let mut after = None;
        while found.examined < MAX_COUNTED_TASKS {
            let page = app.engine().search(filter, after, PAGE_SIZE).await?;
            for task in &page.tasks {
                found.add(app, task, now);
                // The time of waits is not in the summary of an ended task.
                if found.waits_examined < MAX_LOADED_TASKS {
                    found.waits_examined += 1;
                    found.add_wait(app, task, now).await;
                }
            }
            found.examined += page.tasks.len();
            after = page.next;
            if after.is_none() {
                found.is_complete = true;
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn count(&self, status: Status) -> u64 {
        self.counts[status as usize]
    }

    fn add(&mut self, app: &App, task: &Snapshot, now: Timestamp) {
        let ended = match task {
            Snapshot::Ended(summary) => Some(summary.updated),
            Snapshot::Open(_) => None,
        };
        let status = Status::of(task);
        self.add_times(status, task.created(), ended, now);
        if status == Status::Failed && self.failures.len() < MAX_FAILURES {
            self.failures.push(TaskRow::of(app.engine(), task));
        }
    }

    /// Adds a task that is not in the store.
    pub(crate) fn add_row(&mut self, row: &TaskRow, now: Timestamp) {
        let ended = (!row.is_open()).then_some(row.last_updated_at);
        self.add_times(row.status, row.created_at, ended, now);
        if row.status == Status::Failed {
            self.failures.push(row.clone());
            self.failures
                .sort_by_key(|row| std::cmp::Reverse(row.created_at));
            self.failures.truncate(MAX_FAILURES);
        }
    }

    fn add_times(
        &mut self,
        status: Status,
        created: Timestamp,
        ended: Option<Timestamp>,
        now: Timestamp,
    ) {
        self.counts[status as usize] += 1;
        add_minute(&mut self.created, created, now);
        if let Some(ended) = ended {
            add_minute(&mut self.ended, ended, now);
            self.durations[class(ended.since(created))] += 1;
        }
    }

    async fn add_wait(&mut self, app: &App, task: &Snapshot, now: Timestamp) {
        let loaded = match task {
            Snapshot::Open(task) => Some(task.clone()),
            Snapshot::Ended(_) => app.engine().load(&Scope::AnyTask, task.id()).await.ok(),
        };
        let Some(task) = loaded else {
            return;
        };
        let lifetime = &task.lifetime;
        let waited =
            lifetime.waited_ms + lifetime.waiting_since.map_or(0, |since| now.since(since));
        if waited > 0 {
            self.waits[class(waited)] += 1;
        }
    }
}

fn add_minute(minutes: &mut [u32], at: Timestamp, now: Timestamp) {
    let ago = usize::try_from(now.since(at) / 60_000).unwrap_or(usize::MAX);
    if let Some(from_end) = minutes.len().checked_sub(1 + ago.min(minutes.len())) {
        minutes[from_end] += 1;
    }
}

fn class(ms: u64) -> usize {
    CLASSES
        .iter()
        .position(|(bound, _)| ms < *bound)
        .unwrap_or(CLASSES.len() - 1)
}

const MAX_FAILURES: usize = 8;

/// How many of the newest tasks are read in full.
const MAX_LOADED_TASKS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_counts_in_the_minute_of_its_creation() {
        let mut minutes = vec![0; 3];
        let now = Timestamp(1_000_000);
        for ago_ms in [0, 59_999, 60_000, 179_999, 180_000, 999_999] {
            add_minute(&mut minutes, Timestamp(now.0 - ago_ms), now);
        }
        assert_eq!(minutes, [1, 1, 2]);
    }

    #[test]
    fn every_duration_has_a_class() {
        assert_eq!(
            [0, 999, 1_000, 59_999, u64::MAX].map(class),
            [0, 0, 1, 2, 5]
        );
    }
}
