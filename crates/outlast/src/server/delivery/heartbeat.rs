//! Progress that only shows that a call lives, for callers that give up on a call that is silent.

use std::time::Duration;

use outlast_engine::engine::Progress;
use tokio::time::Instant;

/// The heartbeat of one call.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval: Option<Duration>,
    due: Option<Instant>,
    /// The progress that the caller knows.
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

    /// When the caller must receive something, if it must.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Something has happened: the caller can be silent for another while.
    pub(super) fn restart(&mut self) {
        self.due = self.interval.map(|interval| Instant::now() + interval);
    }

    /// The caller learns of progress.
    pub(super) fn record(&mut self, progress: &Progress) {
        self.progress = progress.done;
    }

    /// Progress so small that the next progress of the work itself is greater.
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
