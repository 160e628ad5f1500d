//! Shutdown of an engine: no new work, time for running calls, the rest is left to the next start.

use std::time::Duration;

use super::{Engine, EngineError, EnginePhase, Inner};
use crate::runtime::timeout;

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// The number of calls that were still running at the deadline. Tasks among them are recovered
    /// at the next start.
    pub interrupted: usize,
}

impl Engine {
    /// Refuses new work, lets running calls finish for at most `drain`, stops the rest without
    /// ending their tasks, and leaves the store. The store itself stays open.
    pub async fn shutdown(self, drain: Duration) -> Result<ShutdownReport, EngineError> {
        self.shutdown_guard.enter(EnginePhase::Draining);
        // Calls that finish in time store their outcomes as usual.
        let _ = timeout(drain, self.inner.calls.wait_until_idle()).await;
        self.shutdown_guard.enter(EnginePhase::Closed);
        self.inner.subscribers.close();
        let interrupted = self.inner.abort_all();
        self.inner.store.leave(self.inner.node).await?;
        Ok(ShutdownReport { interrupted })
    }
}

impl Inner {
    /// Stops all running calls without ending any task. Returns their number.
    pub(crate) fn abort_all(&self) -> usize {
        let left = self.calls.take_all();
        left.iter().for_each(|call_state| call_state.abort());
        left.len()
    }
}
