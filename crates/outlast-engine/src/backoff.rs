//! Delays between attempts at an operation that fails.

use std::time::Duration;

use crate::random;

/// Delays that double from attempt to attempt, up to a maximum.
///
/// Each delay is shortened at random by up to a half, so that clients which failed together do not
/// retry together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts with `first`; no delay is longer than `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// The delay before the next attempt.
    pub fn delay(&mut self) -> Duration {
        self.delay_of_at_least(None)
    }

    /// The delay before the next attempt, at least `stated`. A delay that the peer states, such as
    /// `Retry-After`, is never shortened, even if it is longer than `longest`.
    pub fn delay_of_at_least(&mut self, stated: Option<Duration>) -> Duration {
        let share = u32::from_be_bytes(random::bytes());
        self.shortened_by(share).max(stated.unwrap_or_default())
    }

    /// The delay after `attempts` attempts, for a caller that stores only their number. After the
    /// first it is the first delay.
    pub fn after(mut self, attempts: u32) -> Duration {
        self.skip_to(attempts);
        self.delay()
    }

    /// The next delay becomes that after `attempts` attempts.
    fn skip_to(&mut self, attempts: u32) {
        let doublings = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let longest = self.longest.max(self.first);
        self.next = self.first.saturating_mul(doublings).min(longest);
    }

    /// Starts again with the first delay.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next delay, shortened by `share` of `u32::MAX` of its half.
    pub(crate) fn shortened_by(&mut self, share: u32) -> Duration {
        let whole = self.next.min(self.longest);
        self.next = whole
            .saturating_mul(2)
            .clamp(self.first, self.longest.max(self.first));
        whole - (whole / 2).mul_f64(f64::from(share) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_DELAY: Duration = Duration::from_millis(100);
    const MAX_DELAY: Duration = Duration::from_millis(500);

    #[test]
    fn delays_double_up_to_the_longest_until_a_reset() {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        let mut pauses = || [0; 4].map(|share| backoff.shortened_by(share).as_millis());
        assert_eq!(pauses(), [100, 200, 400, 500]);
        assert_eq!(pauses(), [500; 4]);
        backoff.reset();
        assert_eq!(backoff.shortened_by(0), FIRST_DELAY);
    }

    #[test]
    fn a_delay_is_shortened_by_half_at_most() {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        assert_eq!(backoff.shortened_by(u32::MAX), FIRST_DELAY / 2);
        assert_eq!(backoff.shortened_by(u32::MAX), FIRST_DELAY);
        for _ in 0..100 {
            backoff.reset();
            let pause = backoff.delay();
            assert!(
                (FIRST_DELAY / 2..=FIRST_DELAY).contains(&pause),
                "{pause:?}"
            );
        }
    }

    #[test]
    fn a_stated_delay_is_a_minimum() {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        let stated = Duration::from_secs(60);
        assert_eq!(backoff.delay_of_at_least(Some(stated)), stated);
        assert!(backoff.delay_of_at_least(Some(Duration::ZERO)) >= FIRST_DELAY);
    }

    #[test]
    fn the_delay_depends_on_the_number_of_attempts() {
        for (attempts, delay) in [
            (0, 100),
            (1, 100),
            (2, 200),
            (3, 400),
            (4, 500),
            (u32::MAX, 500),
        ] {
            let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
            backoff.skip_to(attempts);
            assert_eq!(backoff.shortened_by(0).as_millis(), delay, "{attempts}");
            let delay = Duration::from_millis(delay as u64);
            let drawn = Backoff::new(FIRST_DELAY, MAX_DELAY).after(attempts);
            assert!(
                (delay / 2..=delay).contains(&drawn),
                "{attempts}: {drawn:?}"
            );
        }
    }

    #[test]
    fn many_delays_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::MAX);
        assert_eq!(backoff.shortened_by(0), Duration::ZERO);
        let mut backoff = Backoff::new(FIRST_DELAY, Duration::MAX);
        for _ in 0..200 {
            backoff.shortened_by(0);
        }
        assert_eq!(backoff.shortened_by(0), Duration::MAX);
    }
}
