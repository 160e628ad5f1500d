//! How running work hears that it should stop.

use tokio::sync::Notify;

use crate::runtime::atomic::{AtomicU8, Ordering};

/// One flag that only rises: go on, please stop, stop.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    level: AtomicU8,
    risen: Notify,
}

impl Stop {
    /// The caller wants the work to stop.
    pub(crate) fn ask(&self) {
        self.rise(ASKED);
    }

    /// Nobody wants the outcome any more.
    pub(crate) fn order(&self) {
        self.rise(ORDERED);
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.level.load(Ordering::Acquire) >= ASKED
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.level.load(Ordering::Acquire) >= ORDERED
    }

    /// Resolves when the work is asked or ordered to stop.
    pub(crate) async fn asked(&self) {
        self.reached(ASKED).await;
    }

    /// Resolves when the work is ordered to stop.
    pub(crate) async fn ordered(&self) {
        self.reached(ORDERED).await;
    }

    fn rise(&self, level: u8) {
        if self.level.fetch_max(level, Ordering::AcqRel) < level {
            self.risen.notify_waiters();
        }
    }

    async fn reached(&self, level: u8) {
        loop {
            let mut risen = std::pin::pin!(self.risen.notified());
            // Registered before the look, so that no rise is missed.
            risen.as_mut().enable();
            if self.level.load(Ordering::Acquire) >= level {
                return;
            }
            risen.await;
        }
    }
}

const ASKED: u8 = 1;
const ORDERED: u8 = 2;
