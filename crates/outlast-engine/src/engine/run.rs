//! One call from its start to its end, in one spawned future.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tracing::Instrument;

use super::call_state::Cell;
use super::{CallContext, Inner, Phase, Runner, call_span};
use crate::backoff::Backoff;
use crate::outcome::{ErrorCode, Outcome};
use crate::runtime::sleep;
use crate::task::Handle;

/// How the work begins.
pub(crate) enum Begin {
    Run,
    Reattach(Handle),
}

impl Inner {
    /// Runs the call in `cell`, which is registered, and sees to its end.
    pub(crate) async fn drive(
        self: Arc<Self>,
        cell: Arc<Cell>,
        runner: Arc<dyn Runner>,
        begin: Begin,
    ) {
        if self.phase() == Phase::Closed {
            self.calls.take(cell.id, cell.attempt);
            cell.call_off();
            self.leave_behind().await;
            return;
        }
        if cell.stop.is_ordered() {
            return;
        }
        let tidy_up = runner.tidy_up();
        let cx = CallContext::new(self.clone(), cell.clone());
        let call = cell.origin.clone();
        tracing::debug!(call = %cell.id, runner = &*call.runner, method = &*call.method, tool = call.tool.as_deref(), "runs");
        let work = async move {
            match begin {
                Begin::Run => runner.run(call, cx).await,
                Begin::Reattach(handle) => runner
                    .reattach(call, handle, cx)
                    .await
                    .unwrap_or_else(outcome_unknown),
            }
        };
        let stopped = async {
            cell.stop.ordered().await;
            if !tidy_up.is_zero() {
                sleep(tidy_up).await;
            }
        };
        let began = self.now();
        let work = work.instrument(call_span(cell.origin.params.as_ref()));
        let outcome = tokio::select! {
            biased;
            outcome = AssertUnwindSafe(work).catch_unwind() => outcome.unwrap_or_else(|_| panicked()),
            // The future is dropped: its outcome is not wanted any more.
            () = stopped => return,
        };
        self.meter
            .called(&cell.origin, &outcome, self.now().since(began));
        self.finish(&cell, outcome).await;
    }

    /// Tells the other nodes, who may have looked before, that a task was left that nobody runs here.
    pub(crate) async fn leave_behind(&self) {
        // A store that is closed has been left already.
        let _ = self.store.leave(self.node).await;
    }
}

/// The error of a task whose executor died and that may not run again.
pub(crate) fn outcome_unknown() -> Outcome {
    Outcome::unknown(
        "the server stopped while this call was running: its outcome is unknown, and it was not run again",
    )
}

/// The pauses between attempts at a store that fails.
#[derive(Debug)]
pub(crate) struct Pause(Backoff);

impl Default for Pause {
    fn default() -> Self {
        Self(Backoff::new(
            Duration::from_millis(20),
            Duration::from_secs(2),
        ))
    }
}

impl Pause {
    pub(crate) async fn rest(&mut self) {
        sleep(self.0.pause()).await;
    }
}

/// The outcome of work that panicked.
fn panicked() -> Outcome {
    Outcome::error(
        ErrorCode(-32603),
        "the tool stopped with an internal error (panic)",
    )
}
