//! Pauses between the attempts at something that fails.

use std::time::Duration;

use crate::random;

/// Pauses that double from attempt to attempt, up to a longest one.
///
/// Each pause is shortened at random by up to a half, so that many who failed at the same moment do
/// not try again at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Begins with `first`; no pause is longer than `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// The pause before the next attempt.
    pub fn pause(&mut self) -> Duration {
        self.pause_of_at_least(None)
    }

    /// The pause before the next attempt. One that the other side states, such as `Retry-After`, is
    /// never shortened, even if it is longer than the longest of our own.
    pub fn pause_of_at_least(&mut self, stated: Option<Duration>) -> Duration {
        let share = u32::from_be_bytes(random::bytes());
        self.shortened_by(share).max(stated.unwrap_or_default())
    }

    /// The next attempt is the first one again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause, shortened by `share` of `u32::MAX` of its half.
    fn shortened_by(&mut self, share: u32) -> Duration {
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

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_millis(500);

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_a_reset() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        let mut pauses = || [0; 4].map(|share| backoff.shortened_by(share).as_millis());
        assert_eq!(pauses(), [100, 200, 400, 500]);
        assert_eq!(pauses(), [500; 4]);
        backoff.reset();
        assert_eq!(backoff.shortened_by(0), FIRST);
    }

    #[test]
    fn a_pause_is_shortened_by_half_at_most() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        assert_eq!(backoff.shortened_by(u32::MAX), FIRST / 2);
        assert_eq!(backoff.shortened_by(u32::MAX), FIRST);
        for _ in 0..100 {
            backoff.reset();
            let pause = backoff.pause();
            assert!((FIRST / 2..=FIRST).contains(&pause), "{pause:?}");
        }
    }

    #[test]
    fn a_stated_pause_is_a_floor() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        let stated = Duration::from_secs(60);
        assert_eq!(backoff.pause_of_at_least(Some(stated)), stated);
        assert!(backoff.pause_of_at_least(Some(Duration::ZERO)) >= FIRST);
    }

    #[test]
    fn many_pauses_overflow_nothing() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::MAX);
        assert_eq!(backoff.shortened_by(0), Duration::ZERO);
        let mut backoff = Backoff::new(FIRST, Duration::MAX);
        for _ in 0..200 {
            backoff.shortened_by(0);
        }
        assert_eq!(backoff.shortened_by(0), Duration::MAX);
    }
}
