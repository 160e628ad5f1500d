//! Progress that only shows that a call lives, for callers that give up on a call that is silent.

use std::time::Duration;

use outlast_engine::engine::Progress;
use tokio::time::Instant;

/// The heartbeat of one call.
#[derive(Debug)]
pub(super) struct Heartbeat {
    every: Option<Duration>,
    due: Option<Instant>,
    /// The progress that the caller knows.
    done: f64,
}

impl Heartbeat {
    pub(super) fn new(every: Option<Duration>) -> Self {
        let mut heartbeat = Self {
            every,
            due: None,
            done: 0.0,
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
        self.due = self.every.map(|every| Instant::now() + every);
    }

    /// The caller learns of progress.
    pub(super) fn record(&mut self, progress: &Progress) {
        self.done = progress.done;
    }

    /// Progress so small that the next progress of the work itself is greater.
    pub(super) fn beat(&mut self) -> Progress {
        self.restart();
        self.done += STEP;
        Progress {
            done: self.done,
            total: None,
            message: None,
        }
    }
}

/// By how much progress grows with each heartbeat.
const STEP: f64 = 1e-6;
