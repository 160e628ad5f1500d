//! Runs one call from its start to its end, in one spawned future.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tracing::Instrument;

use super::call_state::CallState;
use super::{CallContext, EnginePhase, Inner, Runner, call_span};
use crate::backoff::Backoff;
use crate::clock::Ids;
use crate::outcome::{ErrorCode, Outcome};
use crate::runtime::sleep;
use crate::task::ResumeState;

/// How the work starts.
pub(crate) enum StartMode {
    Run,
    Reattach(ResumeState),
}

impl Inner {
    /// Runs the registered call in `call_state` and handles its end.
    pub(crate) async fn run_call(
        self: Arc<Self>,
        call_state: Arc<CallState>,
        runner: Arc<dyn Runner>,
        start_mode: StartMode,
    ) {
        if self.phase() == EnginePhase::Closed {
            self.calls.take(call_state.id, call_state.attempt);
            call_state.abort();
            self.announce_orphan().await;
            return;
        }
        if call_state.cancellation.is_aborted() {
            return;
        }
        let cleanup_timeout = runner.cleanup_timeout();
        let cx = CallContext::new(self.clone(), call_state.clone());
        let call = call_state.origin.clone();
        tracing::debug!(call = %call_state.id, runner = &*call.runner, method = &*call.method, tool = call.tool.as_deref(), "runs");
        let work = async move {
            match start_mode {
                StartMode::Run => runner.run(call, cx).await,
                StartMode::Reattach(handle) => runner
                    .reattach(call, handle, cx)
                    .await
                    .unwrap_or_else(outcome_unknown),
            }
        };
        let stopped = async {
            call_state.cancellation.aborted().await;
            if !cleanup_timeout.is_zero() {
                sleep(cleanup_timeout).await;
            }
        };
        let began = self.now();
        let work = work.instrument(call_span(call_state.origin.params.as_ref()));
        let outcome = tokio::select! {
            biased;
            outcome = AssertUnwindSafe(work).catch_unwind() => outcome.unwrap_or_else(|_| panicked()),
            // The work is dropped, because its outcome is no longer used.
            () = stopped => return,
        };
        self.metrics
            .called(&call_state.origin, &outcome, self.now().since(began));
        self.finish(&call_state, outcome).await;
    }

    /// Notifies the other nodes that a stored task has no executor.
    pub(crate) async fn announce_orphan(&self) {
        // If the store is closed, the node has already left.
        let _ = self.store.leave(self.node).await;
    }
}

/// The error of a task whose executor was lost and that may not run again.
pub(crate) fn outcome_unknown() -> Outcome {
    Outcome::unknown(
        "the server stopped while this call was running: its outcome is unknown, and it was not run again",
    )
}

/// The delays between attempts while the store fails.
#[derive(Debug)]
pub(crate) struct RetryDelay(Backoff);

impl Default for RetryDelay {
    fn default() -> Self {
        Self(Backoff::new(
            Duration::from_millis(20),
            Duration::from_secs(2),
        ))
    }
}

impl RetryDelay {
    pub(crate) async fn wait(&mut self, ids: &dyn Ids) {
        sleep(self.0.shortened_by(ids.jitter())).await;
    }
}

/// The outcome of work that panicked.
fn panicked() -> Outcome {
    Outcome::error(
        ErrorCode(-32603),
        "the tool stopped with an internal error (panic)",
    )
}
