//! Waiting for what other processes do.

use std::time::{Duration, Instant};

/// Looks again and again until `found` is so, for a minute at most.
pub fn until(what: &str, mut found: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !found() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what} does not come true"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
