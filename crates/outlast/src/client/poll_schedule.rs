//! Decides when a task is polled next. Pure: the time is an argument.
//!
//! The interval is never shorter than the server says. It starts at the response to the last poll
//! (S4-39). Notifications only postpone the next poll (S4-24).

use std::time::Duration;

use tokio::time::Instant;

/// The poll schedule of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PollSchedule {
    defaults: PollDefaults,
    interval: Duration,
    next: Instant,
    /// Notifications postpone the poll at most until then.
    latest_poll: Instant,
    failures: u32,
}

impl PollSchedule {
    /// Starts at `now` with the server's interval in milliseconds.
    pub(crate) fn new(defaults: PollDefaults, now: Instant, interval_ms: Option<u64>) -> Self {
        let mut schedule = Self {
            defaults,
            interval: defaults.default_interval,
            next: now,
            latest_poll: now,
            failures: 0,
        };
        schedule.polled(defaults, now, interval_ms);
        schedule
    }

    /// The time of the next poll.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// How many polls in a row have failed.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// A poll succeeded.
    pub(crate) fn polled(
        &mut self,
        defaults: PollDefaults,
        now: Instant,
        interval_ms: Option<u64>,
    ) {
        self.defaults = defaults;
        self.failures = 0;
        self.interval = self.defaults.read(interval_ms);
        self.next = now + self.interval;
        self.latest_poll = now + self.interval * MAX_POSTPONED_INTERVALS;
    }

    /// A status notification arrived.
    pub(crate) fn notified(&mut self, now: Instant, interval_ms: Option<u64>) {
        self.interval = self.defaults.read(interval_ms);
        self.next = (now + self.interval).min(self.latest_poll).max(self.next);
    }

    /// Polls as soon as the minimum interval allows.
    pub(crate) fn poll_soon(&mut self, now: Instant) {
        self.next = self.next.min(now + MIN_INTERVAL);
    }

    /// A poll failed, and the server asks for this delay.
    pub(crate) fn retry_after(&mut self, now: Instant, delay: Duration) {
        self.failures += 1;
        self.next = now + delay.clamp(self.interval, MAX_BACKOFF.max(self.interval));
        self.latest_poll = self.next;
    }

    /// A poll failed. The next interval is longer. The first failures lengthen it by little, so
    /// that the result of a task arrives soon after a restart of the server.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures += 1;
        let delay = if self.failures == 1 {
            self.interval
        } else {
            let doublings = self.failures.saturating_sub(SHORT_OUTAGE_POLLS).min(5);
            (self.interval + SHORT_OUTAGE_DELAY).saturating_mul(1 << doublings)
        };
        let delay = delay.min(MAX_BACKOFF).max(self.interval);
        self.next = now + delay;
        self.latest_poll = self.next;
    }
}

/// The default poll intervals of a generation (BD-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollDefaults {
    /// The interval if the server names none.
    default_interval: Duration,
    /// The longest accepted interval. Without it an absurd value would stop the polling.
    max_interval: Duration,
}

impl PollDefaults {
    /// S4-37.
    pub(crate) const V1: Self = Self {
        default_interval: Duration::from_secs(5),
        max_interval: Duration::from_secs(3_600),
    };

    /// A2-28.
    pub(crate) const V2: Self = Self {
        default_interval: Duration::from_secs(1),
        max_interval: Duration::from_secs(60),
    };

    /// The server's interval, within the limits (V1-GET-2, V2-GET-8).
    fn read(self, interval_ms: Option<u64>) -> Duration {
        interval_ms.map_or(self.default_interval, |millis| {
            Duration::from_millis(millis).clamp(MIN_INTERVAL, self.max_interval)
        })
    }
}

/// The shortest interval, whatever the server says.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// How many polls in a row may fail before the delay doubles with each further one.
const SHORT_OUTAGE_POLLS: u32 = 10;

/// What the second and later failed polls add to the interval.
const SHORT_OUTAGE_DELAY: Duration = Duration::from_secs(1);

/// The longest delay after failures, unless the server's interval is longer.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How many intervals notifications can postpone a poll by.
const MAX_POSTPONED_INTERVALS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn each_poll_sets_the_interval_within_limits() {
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, now, None);
        assert_eq!(schedule.next(), now + PollDefaults::V1.default_interval);
        schedule.polled(PollDefaults::V1, now, Some(700));
        assert_eq!(schedule.next(), now + MS(700));
        schedule.polled(PollDefaults::V1, now, Some(0));
        assert_eq!(schedule.next(), now + MIN_INTERVAL);
        schedule.polled(PollDefaults::V1, now, Some(u64::MAX));
        assert_eq!(schedule.next(), now + PollDefaults::V1.max_interval);
    }

    #[test]
    fn each_generation_has_default_intervals() {
        // BD-19, A2-28.
        let now = Instant::now();
        for (defaults, interval_ms, expected) in [
            (PollDefaults::V1, None, MS(5_000)),
            (PollDefaults::V2, None, MS(1_000)),
            (PollDefaults::V2, Some(0), MS(100)),
            (PollDefaults::V2, Some(u64::MAX), MS(60_000)),
        ] {
            assert_eq!(
                PollSchedule::new(defaults, now, interval_ms).next(),
                now + expected
            );
        }
    }

    #[test]
    fn notifications_postpone_polls_but_never_replace_them() {
        let start = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, start, Some(1_000));
        let mut now = start;
        for _ in 0..20 {
            now += MS(500);
            if now >= schedule.next() {
                break;
            }
            let before = schedule.next();
            schedule.notified(now, Some(1_000));
            assert!(schedule.next() >= before);
        }
        assert_eq!(schedule.next(), start + MS(3_000));
    }

    #[test]
    fn a_notification_never_makes_a_poll_earlier() {
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, now, Some(5_000));
        schedule.notified(now, Some(100));
        assert_eq!(schedule.next(), now + MS(5_000));
    }

    #[test]
    fn the_servers_retry_delay_is_kept() {
        // A2-29.
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V2, now, Some(1_000));
        for (wanted, given) in [(0, 1), (7, 7), (100_000, 60)] {
            schedule.retry_after(now, Duration::from_secs(wanted));
            assert_eq!(schedule.next(), now + Duration::from_secs(given));
        }
        assert_eq!(schedule.failures(), 3);
    }

    #[test]
    fn failures_lengthen_the_poll_interval() {
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, now, Some(1_000));
        let mut waits = Vec::new();
        for _ in 0..17 {
            schedule.failed(now);
            waits.push((schedule.next() - now).as_secs());
        }
        // A restart delays a poll by one interval and 1 s at most.
        assert_eq!(waits[..10], [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(waits[10..], [4, 8, 16, 32, 60, 60, 60]);
        schedule.polled(PollDefaults::V1, now, Some(1_000));
        assert_eq!((schedule.next(), schedule.failures()), (now + MS(1_000), 0));
    }
}
