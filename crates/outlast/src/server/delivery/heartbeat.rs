//! Progress notifications that only show that a call is alive, for clients with an idle timeout.

use std::time::Duration;

use outlast_engine::engine::Progress;
use tokio::time::Instant;

/// The heartbeat of one call.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval: Option<Duration>,
    due: Option<Instant>,
    /// The progress that was sent last.
    progress: f64,
}

impl Heartbeat {
    pub(super) fn new(interval: Option<Duration>) -> Self {
        let mut heartbeat = Self {
            interval,
            due: None,
            progress: 0.0,
        };
        heartbeat.restart();
        heartbeat
    }

    /// When the next message is due, if there is a heartbeat.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Restarts the interval after any message.
    pub(super) fn restart(&mut self) {
        self.due = self.interval.map(|interval| Instant::now() + interval);
    }

    /// Records the progress that was sent to the caller.
    pub(super) fn record(&mut self, progress: &Progress) {
        self.progress = progress.done;
    }

    /// The next heartbeat. Its step is so small that the next real progress is greater.
    pub(super) fn beat(&mut self) -> Progress {
        self.restart();
        self.progress += PROGRESS_STEP;
        Progress {
            done: self.progress,
            total: None,
            message: None,
        }
    }
}

/// By how much progress grows with each heartbeat.
const PROGRESS_STEP: f64 = 1e-6;
