//! The limits of an engine: how long, how many, how large.

use outlast_wire::log::Log;
use outlast_wire::{Raw, Timestamp};

use crate::outcome::Outcome;
use crate::task::{Keep, Lifetime};

/// What an engine grants. Lengths of time in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The TTL of a task whose caller wants none in particular.
    pub ttl_default: u64,
    /// The longest TTL that is granted.
    pub ttl_cap: u64,
    /// What happens to a task whose TTL runs out while it works: the default is [`Keep::WhileLive`],
    /// and [`Keep::Strict`] is the rule that the TTL ends the work.
    pub keep: Keep,
    /// How long a call may run, time spent awaiting input not counted.
    pub run_limit: Option<u64>,
    /// The poll interval that is reported while a task is young. Once it is older than 30 s, five times
    /// this is reported.
    pub poll_interval: u32,
    /// How many tasks there may be.
    pub quota: Quota,
    /// How large things may be.
    pub sizes: Sizes,
    /// How often a call may be started, the first start included.
    pub max_attempts: u32,
    /// How long a runner may take to obey a cancellation before the task ends as cancelled anyway.
    pub cancel_patience: u64,
    /// How long a status text may wait for company before it is stored.
    pub status_delay: u64,
}

/// How many tasks there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Tasks of one owner that have not ended.
    pub owner_open: u32,
    /// Tasks of one owner.
    pub owner_retained: u32,
    /// All tasks that have not ended.
    pub open: u64,
    /// All tasks.
    pub retained: u64,
}

/// How large things may be, in bytes, and how many a task may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Parameters, results, errors, questions and answers.
    pub payload: usize,
    /// Status texts; longer ones are cut.
    pub status: usize,
    /// The data of a log message.
    pub log: usize,
    /// The opaque handle of a runner.
    pub handle: usize,
    /// The questions a task may ask in its life.
    pub questions: usize,
    /// A request key, an owner's name, an ask key.
    pub name: usize,
}

impl Default for Policy {
    /// One hour, kept while it runs, 32 running tasks per owner, 16 MiB.
    fn default() -> Self {
        Self {
            ttl_default: HOUR,
            ttl_cap: HOUR,
            keep: Keep::default(),
            run_limit: None,
            poll_interval: 1_000,
            quota: Quota {
                owner_open: 32,
                owner_retained: 10_000,
                open: 10_000,
                retained: 2_000_000,
            },
            sizes: Sizes {
                payload: 16 << 20,
                status: 1 << 10,
                log: 64 << 10,
                handle: 64 << 10,
                questions: 256,
                name: 512,
            },
            max_attempts: 3,
            cancel_patience: 5_000,
            status_delay: 5,
        }
    }
}

impl Policy {
    /// The lifetime granted to a task whose caller asked for `ttl`.
    pub(crate) fn lifetime(&self, ttl: Option<u64>) -> Lifetime {
        let ttl = ttl.unwrap_or(self.ttl_default).min(self.ttl_cap).max(1);
        Lifetime::new(ttl, self.keep, self.run_limit)
    }
}

/// The poll interval to report at `now`, in milliseconds, for a task with that interval while young.
/// It is at most a quarter of the TTL: a caller that polls as told sees the task before it is gone.
///
/// A caller that gives a task up after five failed polls must outlast a restart of the server, and most
/// tasks end soon: a short interval first, a longer one later.
pub(crate) fn poll_interval_at(young: u32, ttl: u64, created: Timestamp, now: Timestamp) -> u64 {
    let by_age = if now.since(created) > YOUNG_MS {
        u64::from(young) * POLL_GROWTH
    } else {
        young.into()
    };
    by_age.min((ttl / POLLS_PER_TTL).max(1))
}

impl Sizes {
    /// The outcome, or the error that takes its place if it is too large to keep.
    pub(crate) fn admit(&self, outcome: Outcome) -> Outcome {
        let size = outcome.body().map_or(0, Raw::size);
        if size <= self.payload {
            return outcome;
        }
        let limit = self.payload;
        Outcome::error(
            crate::outcome::ErrorCode(-32603),
            format!(
                "the result has {size} bytes, more than the limit of {limit} (setting `sizes.payload`; `payloadBytes` of the gateway)"
            ),
        )
    }

    /// The message, or one that says how large it was if it is too large.
    pub(crate) fn admit_log(&self, mut log: Log) -> Log {
        let size = log.data.size();
        if size > self.log {
            let limit = self.log;
            let note = format!(
                "a message of {size} bytes was left out: the limit is {limit} (setting `sizes.log`)"
            );
            log.data = Raw::encode(&note).expect("a text is JSON");
        }
        log
    }

    /// `text`, cut to the length of a status.
    pub(crate) fn cut_status<'a>(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(self.status)]
    }
}

const HOUR: u64 = 3_600_000;

/// For how long after its creation a task is young.
const YOUNG_MS: u64 = 30_000;

/// How many polls fit into a TTL at least.
const POLLS_PER_TTL: u64 = 4;

/// How many times longer the poll interval of an older task is.
const POLL_GROWTH: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_poll_interval_grows_once_a_task_is_older_than_30_s() {
        let interval = |age| {
            let created = Timestamp(1 << 40);
            let young = Policy::default().poll_interval;
            poll_interval_at(young, HOUR, created, created.plus(age))
        };
        assert_eq!([0, 1, 30_000].map(interval), [1_000; 3]);
        assert_eq!([30_001, 3_600_000].map(interval), [5_000; 2]);
        // A clock that went back makes nothing older.
        assert_eq!(poll_interval_at(250, HOUR, Timestamp(9), Timestamp(3)), 250);
    }

    #[test]
    fn the_poll_interval_is_at_most_a_quarter_of_the_ttl() {
        let interval = |ttl, age| poll_interval_at(1_000, ttl, Timestamp(0), Timestamp(age));
        assert_eq!(interval(2_000, 0), 500);
        assert_eq!(interval(4_000, 0), 1_000);
        assert_eq!(interval(16_000, 31_000), 4_000);
        assert_eq!(interval(1, 0), 1);
    }
}
