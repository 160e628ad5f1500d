//! Where tools of the server wait until the test lets them go on, and how often they were run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::tools::ToolFailure;
use tokio::sync::Semaphore;

pub(crate) struct Gate {
    /// Every permit lets one call go on.
    permits: Semaphore,
    waiting: AtomicUsize,
    runs: AtomicUsize,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
        })
    }

    /// A call begins.
    pub(crate) fn run(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }

    /// How many calls have begun.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits for a permit. Whoever is dropped meanwhile waits no longer.
    pub(crate) async fn pass(&self) -> Result<(), ToolFailure> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waits = Waits(&self.waiting);
        self.permits.acquire().await?.forget();
        Ok(())
    }

    /// Lets every call go on.
    pub(crate) fn open(&self) {
        self.add_permits(1_000);
    }

    /// Lets so many calls go on.
    pub(crate) fn add_permits(&self, calls: usize) {
        self.permits.add_permits(calls);
    }

    /// How many calls could go on at once.
    pub(crate) fn available_permits(&self) -> usize {
        self.permits.available_permits()
    }

    /// Waits until so many calls wait.
    pub(crate) async fn until_waiting(&self, calls: usize) {
        let waiting = async {
            while self.waiting.load(Ordering::SeqCst) != calls {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // As long as a paused clock may have to jump.
        let waited = tokio::time::timeout(Duration::from_secs(3_600), waiting).await;
        waited.unwrap();
    }
}

/// A call that waits at the gate, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
