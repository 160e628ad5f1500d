//! A clock that a test sets. It advances with tokio's time, and is paused while that is paused.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Clock;
use outlast_wire::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// A clock whose time is what it was set to, plus the time of tokio since then.
///
/// Clones are the same clock. Like the clock of a machine, it can be set without an effect on
/// timers.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Mutex<ClockSetting>>);

#[derive(Clone, Copy, Debug)]
struct ClockSetting {
    shown: Timestamp,
    at: Instant,
}

impl SimClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(ClockSetting {
            shown: now,
            at: Instant::now(),
        })))
    }

    /// Sets the clock to `now`, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        *self.setting() = ClockSetting {
            shown: now,
            at: Instant::now(),
        };
    }

    /// Sets the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(millis(by)));
    }

    /// Sets the clock back, to 1970 at the earliest.
    pub fn set_back(&self, by: Duration) {
        self.set(Timestamp(self.now().0.saturating_sub(millis(by))));
    }

    fn setting(&self) -> MutexGuard<'_, ClockSetting> {
        // A panic cannot leave a single assignment half done.
        self.0.lock()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let ClockSetting { shown, at } = *self.setting();
        shown.plus(millis(at.elapsed()))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000);

    #[tokio::test(start_paused = true)]
    async fn the_clock_runs_with_paused_time() {
        let clock = SimClock::new(START);
        assert_eq!(clock.now(), START);
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(clock.now(), START.plus(250));
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_jumps_both_ways_and_runs_on() {
        let clock = SimClock::new(START);
        clock.set_back(Duration::from_secs(600));
        assert_eq!(clock.now(), Timestamp(400_000));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), Timestamp(401_000));
        clock.clone().advance(Duration::from_secs(9));
        assert_eq!(clock.now(), Timestamp(410_000));
        clock.set_back(Duration::MAX);
        assert_eq!(clock.now(), Timestamp(0));
    }
}
