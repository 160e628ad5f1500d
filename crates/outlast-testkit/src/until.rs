//! Waiting for a condition that other processes cause.

use std::time::{Duration, Instant};

/// Calls `found` repeatedly until it returns true, for a minute at most.
///
/// # Panics
///
/// If it takes longer.
pub fn until(what: &str, mut found: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !found() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what}: did not happen within 60 s"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
