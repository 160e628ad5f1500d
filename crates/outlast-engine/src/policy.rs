//! The limits of an engine: times, numbers of tasks, sizes.

use std::time::Duration;

use outlast_wire::log::Log;
use outlast_wire::{Raw, Timestamp};

use crate::outcome::Outcome;
use crate::task::{Lifetime, TtlPolicy};

/// What an engine grants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The TTL of a task whose caller requests none.
    pub default_ttl: Duration,
    /// The longest TTL that is granted.
    pub max_ttl: Duration,
    /// What happens to a task whose TTL ends while it works: by default it is kept
    /// ([`TtlPolicy::KeepLive`]); with [`TtlPolicy::Strict`] the TTL ends the work.
    pub ttl_policy: TtlPolicy,
    /// How long a call may run, time spent awaiting input not counted.
    pub run_limit: Option<Duration>,
    /// The poll interval that is reported for a task younger than 30 s. For an older task it is
    /// five times as long.
    pub poll_interval: Duration,
    /// The limits on the number of tasks.
    pub quota: Quota,
    /// The limits on sizes.
    pub sizes: SizeLimits,
    /// How often a call may be started, the first start included.
    pub max_attempts: u32,
    /// How long a runner may take to react to a requested cancellation. After that the task ends as
    /// cancelled.
    pub cancel_timeout: Duration,
    /// How long a status message may wait before it is stored. Messages of one call within this
    /// time are one write.
    pub status_delay: Duration,
}

crate::option_setters! { Policy:
    set with_default_ttl(default_ttl: Duration);
    set with_max_ttl(max_ttl: Duration);
    set with_ttl_policy(ttl_policy: TtlPolicy);
    maybe with_run_limit(run_limit: Duration);
    set with_poll_interval(poll_interval: Duration);
    set with_quota(quota: Quota);
    set with_sizes(sizes: SizeLimits);
    set with_max_attempts(max_attempts: u32);
    set with_cancel_timeout(cancel_timeout: Duration);
    set with_status_delay(status_delay: Duration);
}

/// The limits on the number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
#[non_exhaustive]
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

crate::option_setters! { SizeLimits:
    set with_payload_bytes(payload_bytes: usize);
    set with_status_bytes(status_bytes: usize);
    set with_log_bytes(log_bytes: usize);
    set with_resume_state_bytes(resume_state_bytes: usize);
    set with_input_requests(input_requests: usize);
    set with_name_bytes(name_bytes: usize);
}

impl Default for Policy {
    /// TTL one hour, running tasks are kept, 32 open tasks per owner, payloads of 16 MiB.
    fn default() -> Self {
        Self {
            default_ttl: HOUR,
            max_ttl: HOUR,
            ttl_policy: TtlPolicy::default(),
            run_limit: None,
            poll_interval: Duration::from_secs(1),
            quota: Quota::default(),
            sizes: SizeLimits::default(),
            max_attempts: 3,
            cancel_timeout: Duration::from_secs(5),
            status_delay: Duration::from_millis(5),
        }
    }
}

impl Policy {
    /// The lifetime granted to a task whose caller requests a TTL of `ttl_ms`.
    pub(crate) fn lifetime(&self, ttl_ms: Option<u64>) -> Lifetime {
        Lifetime::new(
            self.granted_ttl_ms(ttl_ms).max(1),
            self.ttl_policy,
            self.run_limit.map(millis),
        )
    }

    /// The TTL in milliseconds for a caller that requests a TTL of `ttl_ms`.
    pub fn granted_ttl_ms(&self, ttl_ms: Option<u64>) -> u64 {
        let requested = ttl_ms.unwrap_or(millis(self.default_ttl));
        requested.min(millis(self.max_ttl))
    }

    /// The poll interval in milliseconds, as it is stored with a task.
    pub(crate) fn poll_interval_ms(&self) -> u32 {
        u32::try_from(millis(self.poll_interval)).unwrap_or(u32::MAX)
    }
}

impl Default for Quota {
    /// 32 open tasks per owner.
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Quota {
    /// 32 open tasks and 10,000 tasks per owner; 10,000 open tasks and 2,000,000 tasks in all.
    pub const DEFAULT: Self = Self {
        owner_open: 32,
        owner_retained: 10_000,
        open: 10_000,
        retained: 2_000_000,
    };

    /// Sets [`Quota::owner_open`].
    #[must_use]
    pub const fn with_owner_open(mut self, tasks: u32) -> Self {
        self.owner_open = tasks;
        self
    }

    /// Sets [`Quota::owner_retained`].
    #[must_use]
    pub const fn with_owner_retained(mut self, tasks: u32) -> Self {
        self.owner_retained = tasks;
        self
    }

    /// Sets [`Quota::open`].
    #[must_use]
    pub const fn with_open(mut self, tasks: u64) -> Self {
        self.open = tasks;
        self
    }

    /// Sets [`Quota::retained`].
    #[must_use]
    pub const fn with_retained(mut self, tasks: u64) -> Self {
        self.retained = tasks;
        self
    }
}

impl Default for SizeLimits {
    /// Payloads of 16 MiB.
    fn default() -> Self {
        Self {
            payload_bytes: 16 << 20,
            status_bytes: 1 << 10,
            log_bytes: 64 << 10,
            resume_state_bytes: 64 << 10,
            input_requests: 256,
            name_bytes: 512,
        }
    }
}

/// A time in milliseconds, as tasks store it.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

const HOUR: Duration = Duration::from_secs(3_600);

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
    fn the_poll_interval_grows_after_30_s() {
        let interval = |age| {
            let created = Timestamp(1 << 40);
            let young = Policy::default().poll_interval_ms();
            poll_interval_at(young, millis(HOUR), created, created.plus(age))
        };
        assert_eq!([0, 1, 30_000].map(interval), [1_000; 3]);
        assert_eq!([30_001, 3_600_000].map(interval), [5_000; 2]);
        // The clock goes back: the task is not older.
        assert_eq!(
            poll_interval_at(250, millis(HOUR), Timestamp(9), Timestamp(3)),
            250
        );
    }

    #[test]
    fn the_poll_interval_is_limited_by_the_ttl() {
        let interval = |ttl, age| poll_interval_at(1_000, ttl, Timestamp(0), Timestamp(age));
        assert_eq!(interval(2_000, 0), 500);
        assert_eq!(interval(4_000, 0), 1_000);
        assert_eq!(interval(16_000, 31_000), 4_000);
        assert_eq!(interval(1, 0), 1);
    }
}
