//! Limits log lines that callers cause, so that a flood of requests cannot fill a disk. The others
//! are counted.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Limits the lines of one log statement.
pub(crate) struct LogLimit(Mutex<Window>);

struct Window {
    /// When the first line of this window was written.
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Window {
            began: None,
            lines: 0,
            left_out: 0,
        }))
    }

    /// Calls `write` with the number of lines that were dropped since the last one, unless the
    /// limit is reached.
    pub(crate) fn log(&self, write: impl FnOnce(u64)) {
        let admitted = self.0.lock().admit(Instant::now());
        if let Some(left_out) = admitted {
            write(left_out);
        }
    }
}

impl Window {
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over = |began: Instant| now.duration_since(began) >= WINDOW;
        if self.began.is_none_or(is_over) {
            (self.began, self.lines) = (Some(now), 0);
        }
        if self.lines >= MAX_LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The maximum of lines in a window.
const MAX_LINES: u32 = 20;

const WINDOW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_writes_few_lines_and_counts_the_dropped_ones() {
        let mut window = LogLimit::new().0.into_inner();
        let start = Instant::now();
        let written = (0..1_000).filter(|_| window.admit(start).is_some());
        assert_eq!(written.count(), 20);
        assert_eq!(window.admit(start + WINDOW), Some(980));
        assert_eq!(window.admit(start + WINDOW), Some(0));
    }
}
