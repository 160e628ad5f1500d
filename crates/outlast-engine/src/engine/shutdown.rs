//! The end of an engine: no new work, time for what runs, the rest left to the next start.

use std::time::Duration;

use super::{Engine, EngineError, Inner, Phase};
use crate::runtime::timeout;

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Calls that still ran when time was up. Those that are tasks are recovered at the next start.
    pub interrupted: usize,
}

impl Engine {
    /// Refuses new work, lets running calls finish for at most `drain`, stops the rest without
    /// ending their tasks, and leaves the store. The store itself stays open.
    pub async fn shutdown(self, drain: Duration) -> Result<ShutdownReport, EngineError> {
        self.shutdown_guard.enter(Phase::Draining);
        // Calls that finish in time store their outcomes as ever.
        let _ = timeout(drain, self.inner.calls.wait_until_idle()).await;
        self.shutdown_guard.enter(Phase::Closed);
        self.inner.subscribers.close();
        let interrupted = self.inner.abort_all();
        self.inner.store.leave(self.inner.node).await?;
        Ok(ShutdownReport { interrupted })
    }
}

impl Inner {
    /// Stops everything that runs here without ending any task; says how much there was.
    pub(crate) fn abort_all(&self) -> usize {
        let left = self.calls.take_all();
        left.iter().for_each(|call_state| call_state.abort());
        left.len()
    }
}
