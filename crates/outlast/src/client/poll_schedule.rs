//! When to look at a task next. Pure: the time is an argument.
//!
//! Looks are never closer than the server says, the next one is planned after the answer to the last (S4-39), and
//! notifications only postpone it (S4-24).

use std::time::Duration;

use tokio::time::Instant;

/// The plan for looking at one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    habit: Habit,
    interval: Duration,
    next: Instant,
    /// No notification postpones the look beyond this.
    latest: Instant,
    failures: u32,
}

impl Pace {
    /// Begins at `now` with what the server says in milliseconds.
    pub(crate) fn new(habit: Habit, now: Instant, told: Option<u64>) -> Self {
        let mut pace = Self {
            habit,
            interval: habit.unsaid,
            next: now,
            latest: now,
            failures: 0,
        };
        pace.looked(habit, now, told);
        pace
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
    pub(crate) fn looked(&mut self, habit: Habit, now: Instant, told: Option<u64>) {
        self.habit = habit;
        self.failures = 0;
        self.interval = self.habit.read(told);
        self.next = now + self.interval;
        self.latest = now + self.interval * POSTPONED;
    }

    /// The server told on its own how the task stands.
    pub(crate) fn heard(&mut self, now: Instant, told: Option<u64>) {
        self.interval = self.habit.read(told);
        self.next = (now + self.interval).min(self.latest).max(self.next);
    }

    /// There is a reason to look as soon as that is allowed at all.
    pub(crate) fn soon(&mut self, now: Instant) {
        self.next = self.next.min(now + FLOOR);
    }

    /// A look failed because the server wants to be left alone for so long.
    pub(crate) fn sent_away(&mut self, now: Instant, pause: Duration) {
        self.failures += 1;
        self.next = now + pause.clamp(self.interval, LONGEST.max(self.interval));
        self.latest = self.next;
    }

    /// A look failed: the next one takes longer to come.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures += 1;
        let pause = self
            .interval
            .saturating_mul(1 << (self.failures - 1).min(5));
        let pause = pause.min(LONGEST).max(self.interval);
        self.next = now + pause;
        self.latest = self.next;
    }
}

/// What is usual in a generation (BD-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habit {
    /// How far apart looks are where the server says nothing.
    unsaid: Duration,
    /// Never further apart, or a server that says nonsense would never be asked again.
    ceiling: Duration,
}

impl Habit {
    /// S4-37.
    pub(crate) const V1: Self = Self {
        unsaid: Duration::from_secs(5),
        ceiling: Duration::from_secs(3_600),
    };

    /// A2-28.
    pub(crate) const V2: Self = Self {
        unsaid: Duration::from_secs(1),
        ceiling: Duration::from_secs(60),
    };

    /// What the server says, if it makes sense (V1-GET-2, V2-GET-8).
    fn read(self, told: Option<u64>) -> Duration {
        told.map_or(self.unsaid, |millis| {
            Duration::from_millis(millis).clamp(FLOOR, self.ceiling)
        })
    }
}

/// Never closer, whatever the server says.
const FLOOR: Duration = Duration::from_millis(100);

/// The longest pause after failures, if the server does not want a longer one.
const LONGEST: Duration = Duration::from_secs(60);

/// How many intervals notifications can postpone a look by.
const POSTPONED: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_interval_is_read_each_time_and_kept_within_reason() {
        let now = Instant::now();
        let mut pace = Pace::new(Habit::V1, now, None);
        assert_eq!(pace.next(), now + Habit::V1.unsaid);
        pace.looked(Habit::V1, now, Some(700));
        assert_eq!(pace.next(), now + MS(700));
        pace.looked(Habit::V1, now, Some(0));
        assert_eq!(pace.next(), now + FLOOR);
        pace.looked(Habit::V1, now, Some(u64::MAX));
        assert_eq!(pace.next(), now + Habit::V1.ceiling);
    }

    #[test]
    fn each_generation_has_its_habits() {
        // BD-19, A2-28.
        let now = Instant::now();
        for (habit, told, expected) in [
            (Habit::V1, None, MS(5_000)),
            (Habit::V2, None, MS(1_000)),
            (Habit::V2, Some(0), MS(100)),
            (Habit::V2, Some(u64::MAX), MS(60_000)),
        ] {
            assert_eq!(Pace::new(habit, now, told).next(), now + expected);
        }
    }

    #[test]
    fn notifications_postpone_the_look_and_do_not_replace_it() {
        let start = Instant::now();
        let mut pace = Pace::new(Habit::V1, start, Some(1_000));
        let mut now = start;
        for _ in 0..20 {
            now += MS(500);
            if now >= pace.next() {
                break;
            }
            let before = pace.next();
            pace.heard(now, Some(1_000));
            assert!(pace.next() >= before);
        }
        assert_eq!(pace.next(), start + MS(3_000));
    }

    #[test]
    fn a_notification_never_brings_a_look_forward() {
        let now = Instant::now();
        let mut pace = Pace::new(Habit::V1, now, Some(5_000));
        pace.heard(now, Some(100));
        assert_eq!(pace.next(), now + MS(5_000));
    }

    #[test]
    fn a_server_that_wants_to_be_left_alone_is() {
        // A2-29.
        let now = Instant::now();
        let mut pace = Pace::new(Habit::V2, now, Some(1_000));
        for (wanted, given) in [(0, 1), (7, 7), (100_000, 60)] {
            pace.sent_away(now, Duration::from_secs(wanted));
            assert_eq!(pace.next(), now + Duration::from_secs(given));
        }
        assert_eq!(pace.failures(), 3);
    }

    #[test]
    fn failures_make_it_slower() {
        let now = Instant::now();
        let mut pace = Pace::new(Habit::V1, now, Some(1_000));
        let mut waits = Vec::new();
        for _ in 0..9 {
            pace.failed(now);
            waits.push((pace.next() - now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 32, 32, 32]);
        pace.looked(Habit::V1, now, Some(1_000));
        assert_eq!((pace.next(), pace.failures()), (now + MS(1_000), 0));
    }
}
