//! What an engine has done since it was opened, in numbers.

// Numbers that only grow and that nothing depends on: the scheduler of the races need not know of them.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::{Engine, Recovered};
use crate::outcome::Ending;

/// What an engine has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks that were stored.
    pub created: u64,
    /// Those that ended with a result.
    pub results: u64,
    /// Those that ended with a result flagged `isError`.
    pub tool_errors: u64,
    /// Those that ended with an error.
    pub errors: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those that were removed because their time was over.
    pub expired: u64,
    /// What became of tasks whose executor was gone.
    pub recovered: Recovered,
    /// How many tasks took at most as long as each of [`Tally::BOUNDS`], and how many longer.
    pub took: [u64; 10],
    /// How long all tasks took that ended.
    pub took_in_all: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    created: AtomicU64,
    results: AtomicU64,
    tool_errors: AtomicU64,
    errors: AtomicU64,
    cancelled: AtomicU64,
    expired: AtomicU64,
    recovered: [AtomicUsize; 4],
    took: [AtomicU64; 10],
    took_in_all: AtomicU64,
}

impl Tally {
    /// Lengths of time, made for long work.
    pub const BOUNDS: [Duration; 9] = [
        Duration::from_millis(100),
        Duration::from_secs(1),
        Duration::from_secs(10),
        Duration::from_secs(60),
        Duration::from_secs(300),
        Duration::from_secs(1_800),
        Duration::from_secs(7_200),
        Duration::from_secs(28_800),
        Duration::from_secs(86_400),
    ];
}

impl Counts {
    pub(crate) fn created(&self) {
        self.created.fetch_add(1, Relaxed);
    }

    pub(crate) fn ended(&self, how: Ending, millis: u64) {
        let count = match how {
            Ending::Result => &self.results,
            Ending::ToolError => &self.tool_errors,
            Ending::Error(_) => &self.errors,
            Ending::Cancelled => &self.cancelled,
        };
        count.fetch_add(1, Relaxed);
        let took = Duration::from_millis(millis);
        let bucket = Tally::BOUNDS.iter().position(|bound| took <= *bound);
        self.took[bucket.unwrap_or(Tally::BOUNDS.len())].fetch_add(1, Relaxed);
        self.took_in_all.fetch_add(millis, Relaxed);
    }

    pub(crate) fn expired(&self, tasks: usize) {
        self.expired.fetch_add(tasks as u64, Relaxed);
    }

    pub(crate) fn recovered(&self, what: Recovered) {
        let all = [what.reattached, what.rerun, what.cancelled, what.unknown];
        for (count, more) in self.recovered.iter().zip(all) {
            count.fetch_add(more, Relaxed);
        }
    }

    fn tally(&self) -> Tally {
        let count = |count: &AtomicU64| count.load(Relaxed);
        let [reattached, rerun, cancelled, unknown] =
            [0, 1, 2, 3].map(|at: usize| self.recovered[at].load(Relaxed));
        Tally {
            created: count(&self.created),
            results: count(&self.results),
            tool_errors: count(&self.tool_errors),
            errors: count(&self.errors),
            cancelled: count(&self.cancelled),
            expired: count(&self.expired),
            recovered: Recovered {
                reattached,
                rerun,
                cancelled,
                unknown,
            },
            took: std::array::from_fn(|at| count(&self.took[at])),
            took_in_all: Duration::from_millis(count(&self.took_in_all)),
        }
    }
}

impl Engine {
    /// What it has done since it was opened.
    pub fn tally(&self) -> Tally {
        self.inner.counts.tally()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_counted_once_and_in_one_bucket() {
        let counts = Counts::default();
        counts.created();
        counts.ended(Ending::Result, 100);
        counts.ended(Ending::ToolError, 101);
        counts.ended(Ending::Cancelled, 1_000_000_000);
        let tally = counts.tally();
        assert_eq!((tally.created, tally.results, tally.cancelled), (1, 1, 1));
        assert_eq!(tally.took, [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(tally.took_in_all.as_millis(), 1_000_000_201);
    }
}
