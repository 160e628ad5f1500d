//! The trait [`Runner`], which executes calls: with tools of this process or at an upstream server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::CallContext;
use crate::origin::Origin;
use crate::outcome::Outcome;
use crate::task::ResumeState;

/// Runs calls. [`Origin::runner`] names it, so that a restarted engine finds it again.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Runs a call from its beginning.
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome;

    /// Continues a call of an earlier attempt with its stored resume state. Returns `None` if that
    /// is impossible; the task then ends with an unknown outcome.
    async fn reattach(
        &self,
        call: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        let _ = (call, handle, cx);
        None
    }

    /// Whether [`Runner::reattach`] is supported.
    fn can_reattach(&self) -> bool {
        false
    }

    /// How long a call may run after its task has ended, to clean up, before it is dropped.
    fn cleanup_timeout(&self) -> Duration {
        Duration::ZERO
    }
}

/// A runner that calls a function.
pub struct FnRunner<F>(F);

impl<F, W> FnRunner<F>
where
    F: Fn(Arc<Origin>, CallContext) -> W + Send + Sync + 'static,
    W: Future<Output = Outcome> + Send + 'static,
{
    /// Runs calls by `run`.
    pub fn new(run: F) -> Self {
        Self(run)
    }
}

#[async_trait]
impl<F, W> Runner for FnRunner<F>
where
    F: Fn(Arc<Origin>, CallContext) -> W + Send + Sync + 'static,
    W: Future<Output = Outcome> + Send + 'static,
{
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        (self.0)(call, cx).await
    }
}
