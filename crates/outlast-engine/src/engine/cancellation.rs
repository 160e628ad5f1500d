//! Notifies running work that it should stop.

use tokio::sync::Notify;

use crate::runtime::atomic::{AtomicU8, Ordering};

/// A level that only rises: running, cancellation requested, aborted.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    level: AtomicU8,
    changed: Notify,
}

impl Cancellation {
    /// The caller requests that the work stops.
    pub(crate) fn request(&self) {
        self.raise(REQUESTED);
    }

    /// The outcome is no longer used.
    pub(crate) fn abort(&self) {
        self.raise(ABORTED);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.level.load(Ordering::Acquire) >= REQUESTED
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.level.load(Ordering::Acquire) >= ABORTED
    }

    /// Resolves when a cancellation is requested or the work is aborted.
    pub(crate) async fn requested(&self) {
        self.reached(REQUESTED).await;
    }

    /// Resolves when the work is aborted.
    pub(crate) async fn aborted(&self) {
        self.reached(ABORTED).await;
    }

    fn raise(&self, level: u8) {
        if self.level.fetch_max(level, Ordering::AcqRel) < level {
            self.changed.notify_waiters();
        }
    }

    async fn reached(&self, level: u8) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that no change is missed.
            changed.as_mut().enable();
            if self.level.load(Ordering::Acquire) >= level {
                return;
            }
            changed.await;
        }
    }
}

const REQUESTED: u8 = 1;
const ABORTED: u8 = 2;
