//! The end of an engine: no new work, time for what runs, the rest left to the next start.

use std::time::Duration;

use super::{Engine, EngineError, Inner, Phase};
use crate::runtime::timeout;

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Calls that still ran when time was up. Those that are tasks are recovered at the next start.
    pub left: usize,
}

impl Engine {
    /// Refuses new work, lets running calls finish for at most `drain`, stops the rest without ending
    /// their tasks, and leaves the store. The store itself stays open.
    pub async fn shutdown(self, drain: Duration) -> Result<Shutdown, EngineError> {
        self.last.enter(Phase::Draining);
        // Calls that finish in time store their outcomes as ever.
        let _ = timeout(drain, self.inner.calls.all_done()).await;
        self.last.enter(Phase::Closed);
        self.inner.topics.close();
        let left = self.inner.call_all_off();
        self.inner.store.leave(self.inner.node).await?;
        Ok(Shutdown { left })
    }
}

impl Inner {
    /// Stops everything that runs here without ending any task; says how much there was.
    pub(crate) fn call_all_off(&self) -> usize {
        let left = self.calls.take_all();
        left.iter().for_each(|cell| cell.call_off());
        left.len()
    }
}
