//! When to look at a task next. Pure: the time is an argument.
//!
//! Looks are never closer than the server says, the next one is planned after the answer to the last (S4-39), and
//! notifications only postpone it (S4-24).

use std::time::Duration;

use tokio::time::Instant;

/// The plan for looking at one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PollSchedule {
    defaults: PollDefaults,
    interval: Duration,
    next: Instant,
    /// No notification postpones the look beyond this.
    latest: Instant,
    failures: u32,
}

impl PollSchedule {
    /// Begins at `now` with what the server says in milliseconds.
    pub(crate) fn new(defaults: PollDefaults, now: Instant, interval_ms: Option<u64>) -> Self {
        let mut schedule = Self {
            defaults,
            interval: defaults.default_interval,
            next: now,
            latest: now,
            failures: 0,
        };
        schedule.polled(defaults, now, interval_ms);
        schedule
    }

    /// When to look next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// How many looks in a row failed.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// A look was answered by a server that has this habit.
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
        self.latest = now + self.interval * MAX_POSTPONED_INTERVALS;
    }

    /// The server told on its own how the task stands.
    pub(crate) fn notified(&mut self, now: Instant, interval_ms: Option<u64>) {
        self.interval = self.defaults.read(interval_ms);
        self.next = (now + self.interval).min(self.latest).max(self.next);
    }

    /// There is a reason to look as soon as that is allowed at all.
    pub(crate) fn poll_soon(&mut self, now: Instant) {
        self.next = self.next.min(now + MIN_INTERVAL);
    }

    /// A look failed because the server wants to be left alone for so long.
    pub(crate) fn retry_after(&mut self, now: Instant, pause: Duration) {
        self.failures += 1;
        self.next = now + pause.clamp(self.interval, MAX_BACKOFF.max(self.interval));
        self.latest = self.next;
    }

    /// A look failed: the next one takes longer to come.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures += 1;
        let pause = self
            .interval
            .saturating_mul(1 << (self.failures - 1).min(5));
        let pause = pause.min(MAX_BACKOFF).max(self.interval);
        self.next = now + pause;
        self.latest = self.next;
    }
}

/// What is usual in a generation (BD-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollDefaults {
    /// How far apart looks are where the server says nothing.
    default_interval: Duration,
    /// Never further apart, or a server that says nonsense would never be asked again.
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

    /// What the server says, if it makes sense (V1-GET-2, V2-GET-8).
    fn read(self, interval_ms: Option<u64>) -> Duration {
        interval_ms.map_or(self.default_interval, |millis| {
            Duration::from_millis(millis).clamp(MIN_INTERVAL, self.max_interval)
        })
    }
}

/// Never closer, whatever the server says.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The longest pause after failures, if the server does not want a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How many intervals notifications can postpone a look by.
const MAX_POSTPONED_INTERVALS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_interval_is_read_each_time_and_kept_within_reason() {
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
    fn each_generation_has_its_habits() {
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
    fn notifications_postpone_the_look_and_do_not_replace_it() {
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
    fn a_notification_never_brings_a_look_forward() {
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, now, Some(5_000));
        schedule.notified(now, Some(100));
        assert_eq!(schedule.next(), now + MS(5_000));
    }

    #[test]
    fn a_server_that_wants_to_be_left_alone_is() {
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
    fn failures_make_it_slower() {
        let now = Instant::now();
        let mut schedule = PollSchedule::new(PollDefaults::V1, now, Some(1_000));
        let mut waits = Vec::new();
        for _ in 0..9 {
            schedule.failed(now);
            waits.push((schedule.next() - now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 32, 32, 32]);
        schedule.polled(PollDefaults::V1, now, Some(1_000));
        assert_eq!((schedule.next(), schedule.failures()), (now + MS(1_000), 0));
    }
}
