//! The limits of an engine: times, numbers of tasks, sizes.

use outlast_wire::log::Log;
use outlast_wire::{Raw, Timestamp};

use crate::outcome::Outcome;
use crate::task::{Lifetime, TtlPolicy};

/// What an engine grants. Durations are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The TTL of a task whose caller requests none.
    pub default_ttl_ms: u64,
    /// The longest TTL that is granted.
    pub max_ttl_ms: u64,
    /// What happens to a task whose TTL ends while it works: by default it is kept
    /// ([`TtlPolicy::KeepLive`]); with [`TtlPolicy::Strict`] the TTL ends the work.
    pub ttl_policy: TtlPolicy,
    /// How long a call may run, time spent awaiting input not counted.
    pub run_limit_ms: Option<u64>,
    /// The poll interval that is reported for a task younger than 30 s. For an older task it is
    /// five times as long.
    pub poll_interval_ms: u32,
    /// The limits on the number of tasks.
    pub quota: Quota,
    /// The limits on sizes.
    pub sizes: SizeLimits,
    /// How often a call may be started, the first start included.
    pub max_attempts: u32,
    /// How long a runner may take to react to a requested cancellation. After that the task ends as
    /// cancelled.
    pub cancel_timeout_ms: u64,
    /// How long a status message may wait before it is stored. Messages of one call within this
    /// time are one write.
    pub status_delay_ms: u64,
}

/// The limits on the number of tasks.
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

/// The limits on sizes, in bytes, and on the input requests of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// Parameters, results, errors, input requests and input responses.
    pub payload_bytes: usize,
    /// Status messages. Longer ones are cut.
    pub status_bytes: usize,
    /// The data of a log message.
    pub log_bytes: usize,
    /// The resume state of a runner.
    pub resume_state_bytes: usize,
    /// The number of input requests of one task.
    pub input_requests: usize,
    /// The name of an owner, a request key, the key of an input request.
    pub name_bytes: usize,
}

impl Default for Policy {
    /// TTL one hour, running tasks are kept, 32 open tasks per owner, payloads of 16 MiB.
    fn default() -> Self {
        Self {
            default_ttl_ms: HOUR_MS,
            max_ttl_ms: HOUR_MS,
            ttl_policy: TtlPolicy::default(),
            run_limit_ms: None,
            poll_interval_ms: 1_000,
            quota: Quota {
                owner_open: 32,
                owner_retained: 10_000,
                open: 10_000,
                retained: 2_000_000,
            },
            sizes: SizeLimits {
                payload_bytes: 16 << 20,
                status_bytes: 1 << 10,
                log_bytes: 64 << 10,
                resume_state_bytes: 64 << 10,
                input_requests: 256,
                name_bytes: 512,
            },
            max_attempts: 3,
            cancel_timeout_ms: 5_000,
            status_delay_ms: 5,
        }
    }
}

impl Policy {
    /// The lifetime granted to a task whose caller requests a TTL of `ttl_ms`.
    pub(crate) fn lifetime(&self, ttl_ms: Option<u64>) -> Lifetime {
        let ttl_ms = ttl_ms
            .unwrap_or(self.default_ttl_ms)
            .min(self.max_ttl_ms)
            .max(1);
        Lifetime::new(ttl_ms, self.ttl_policy, self.run_limit_ms)
    }
}

/// The poll interval in milliseconds to report at `now` for a task whose interval is `young_ms`
/// while it is young.
///
/// It is at most a quarter of the TTL, so that a caller that polls at this interval sees the task
/// before it expires. Most tasks end soon, so the interval is short at first. It grows, because a
/// caller that gives up after five failed polls must survive a restart of the server.
pub(crate) fn poll_interval_at(
    young_ms: u32,
    ttl_ms: u64,
    created: Timestamp,
    now: Timestamp,
) -> u64 {
    let by_age = if now.since(created) > YOUNG_AGE_MS {
        u64::from(young_ms) * OLD_POLL_FACTOR
    } else {
        young_ms.into()
    };
    by_age.min((ttl_ms / MIN_POLLS_PER_TTL).max(1))
}

impl SizeLimits {
    /// Returns `outcome`, or an error in its place if its body is too large to store.
    pub(crate) fn admit(&self, outcome: Outcome) -> Outcome {
        let size = outcome.body().map_or(0, Raw::size);
        if size <= self.payload_bytes {
            return outcome;
        }
        let limit = self.payload_bytes;
        Outcome::error(
            crate::outcome::ErrorCode(-32603),
            format!(
                "the result has {size} bytes; the limit is {limit} (setting `sizes.payload_bytes`; `payloadBytes` of the gateway)"
            ),
        )
    }

    /// Returns `log`, or a message with its size in its place if its data is too large.
    pub(crate) fn admit_log(&self, mut log: Log) -> Log {
        let size = log.data.size();
        if size > self.log_bytes {
            let limit = self.log_bytes;
            let notice = format!(
                "a log message of {size} bytes was dropped: the limit is {limit} (setting `sizes.log_bytes`)"
            );
            log.data = Raw::encode(&notice).expect("a string is JSON");
        }
        log
    }

    /// Returns `text`, cut to the maximum length of a status message.
    pub(crate) fn cut_status<'a>(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(self.status_bytes)]
    }
}

const HOUR_MS: u64 = 3_600_000;

/// The age up to which a task is young.
const YOUNG_AGE_MS: u64 = 30_000;

/// The minimum number of polls within a TTL.
const MIN_POLLS_PER_TTL: u64 = 4;

/// How many times longer the poll interval of an old task is.
const OLD_POLL_FACTOR: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_poll_interval_grows_once_a_task_is_older_than_30_s() {
        let interval = |age| {
            let created = Timestamp(1 << 40);
            let young = Policy::default().poll_interval_ms;
            poll_interval_at(young, HOUR_MS, created, created.plus(age))
        };
        assert_eq!([0, 1, 30_000].map(interval), [1_000; 3]);
        assert_eq!([30_001, 3_600_000].map(interval), [5_000; 2]);
        // The clock goes back: the task is not older.
        assert_eq!(
            poll_interval_at(250, HOUR_MS, Timestamp(9), Timestamp(3)),
            250
        );
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
