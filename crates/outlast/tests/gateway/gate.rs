//! A gate where tools of the server wait for a permit of the test, and counters of their runs and
//! of the polls of their tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast::server::{FilteredRequest, Middleware, RequestError, TaskInfo};
use outlast::tools::ToolFailure;
use outlast_testkit::within;
use tokio::sync::Semaphore;

pub(crate) struct Gate {
    /// Every permit lets one call continue.
    permits: Semaphore,
    waiting: AtomicUsize,
    runs: AtomicUsize,
    polls: AtomicUsize,
}

/// Counts the polls that a server receives.
pub(crate) struct PollCounter(pub(crate) Arc<Gate>);

#[async_trait]
impl Middleware for PollCounter {
    async fn get_task(
        &self,
        request: FilteredRequest<'_, TaskInfo>,
    ) -> Result<TaskInfo, RequestError> {
        self.0.polls.fetch_add(1, Ordering::SeqCst);
        request.run().await
    }
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            polls: AtomicUsize::new(0),
        })
    }

    /// Counts the start of a call.
    pub(crate) fn run(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of started calls.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits for a permit. A dropped future does not count as waiting.
    pub(crate) async fn wait_for_permit(&self) -> Result<(), ToolFailure> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waits = WaitingCall(&self.waiting);
        self.permits.acquire().await?.forget();
        Ok(())
    }

    /// Lets every call continue.
    pub(crate) fn open(&self) {
        self.add_permits(1_000);
    }

    /// Lets this number of calls continue.
    pub(crate) fn add_permits(&self, calls: usize) {
        self.permits.add_permits(calls);
    }

    /// The number of free permits.
    pub(crate) fn available_permits(&self) -> usize {
        self.permits.available_permits()
    }

    /// Waits until `calls` calls wait.
    pub(crate) async fn until_waiting(&self, calls: usize) {
        let waiting = async {
            while self.waiting.load(Ordering::SeqCst) != calls {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Not `eventually`: the future of an async closure cannot be spawned.
        within(&format!("{calls} calls wait"), waiting).await;
    }

    /// Waits until the server has received `polls` polls.
    pub(crate) async fn until_polled(&self, polls: usize) {
        let polled = async {
            while self.polls.load(Ordering::SeqCst) < polls {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(&format!("{polls} polls"), polled).await;
    }
}

/// Counts a waiting call until it is dropped.
struct WaitingCall<'a>(&'a AtomicUsize);

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
