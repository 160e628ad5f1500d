//! Something that runs calls: a tool in this process, an upstream server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::CallContext;
use crate::origin::Origin;
use crate::outcome::Outcome;
use crate::task::ResumeState;

/// Runs calls. Named in [`Origin::runner`], so that a restarted engine finds it again.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Runs a call from its beginning.
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome;

    /// Goes on with work that an earlier attempt left under `handle`, or says why that is
    /// impossible.
    async fn reattach(
        &self,
        call: Arc<Origin>,
        handle: ResumeState,
        cx: CallContext,
    ) -> Option<Outcome> {
        let _ = (call, handle, cx);
        None
    }

    /// Whether [`Runner::reattach`] can find work again.
    fn can_reattach(&self) -> bool {
        false
    }

    /// How long a call may go on after its task is over, to tidy up, before it is dropped.
    fn cleanup_timeout(&self) -> Duration {
        Duration::ZERO
    }
}

/// A runner that is a function.
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
