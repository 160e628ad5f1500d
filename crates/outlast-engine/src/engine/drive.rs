//! One call from its start to its end, in one spawned future.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::Instrument;

use super::cell::{Cell, Stage};
use super::{CallContext, Inner, Phase, Runner, call_span};
use crate::id::Scope;
use crate::outcome::{ErrorCode, Outcome};
use crate::runtime::sleep;
use crate::store::{Committed, Snapshot, StoreError};
use crate::task::{Handle, Task};
use crate::transition::Command;

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
        let work = work.instrument(call_span(cell.origin.params.as_ref()));
        let outcome = tokio::select! {
            biased;
            outcome = unless_it_panics(work) => outcome,
            // The future is dropped: its outcome is not wanted any more.
            () = stopped => return,
        };
        self.finish(&cell, outcome).await;
    }

    /// Ends the call with `outcome`, however long the store takes to keep it.
    async fn finish(&self, cell: &Arc<Cell>, outcome: Outcome) {
        let outcome = self.policy.sizes.admit(outcome);
        let mut known = {
            let mut local = cell.local();
            match std::mem::replace(&mut local.stage, Stage::Over) {
                Stage::Plain(_, tell) => {
                    drop(local);
                    self.calls.take(cell.id, cell.attempt);
                    if let Some(tell) = tell {
                        let _ = tell.send(outcome);
                    }
                    self.topics.settle(cell.id, None);
                    return;
                }
                Stage::Promoting(task, tell, _) => {
                    // Whoever promotes it decides how the outcome travels.
                    local.stage = Stage::Promoting(task, tell, Some(outcome));
                    return;
                }
                Stage::Stored(known) => known,
                // Nothing runs before it is stored.
                Stage::Storing | Stage::Over => return,
            }
        };
        let status = cell.local().status.take();
        let mut pause = Pause::default();
        loop {
            match self
                .end(cell, &known, status.clone(), outcome.clone())
                .await
            {
                Ok(()) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(passing) if passing.is_passing() && self.phase() != Phase::Closed => {
                    tracing::warn!(task = %cell.id, %passing, "an outcome waits for the store");
                    pause.rest().await;
                }
                Err(error) => {
                    tracing::error!(task = %cell.id, %error, "an outcome could not be stored");
                    break;
                }
            }
            match self.store.get(&Scope::Anyone, cell.id).await {
                Ok(Some(Snapshot::Open(task))) => known = task,
                Ok(Some(Snapshot::Ended(_)) | None) => {
                    tracing::info!(task = %cell.id, "a late outcome was dropped");
                    break;
                }
                Err(_) => pause.rest().await,
            }
        }
        self.calls.take(cell.id, cell.attempt);
    }

    /// Tells the other nodes, who may have looked before, that a task was left that nobody runs here.
    pub(crate) async fn leave_behind(&self) {
        // A store that is closed has been left already.
        let _ = self.store.leave(self.node).await;
    }

    /// Stores the end of a call; a status text that waits for company goes with it.
    async fn end(
        &self,
        cell: &Cell,
        known: &Committed<Task>,
        status: Option<Arc<str>>,
        outcome: Outcome,
    ) -> Result<(), StoreError> {
        let attempt = cell.attempt;
        let status = status.map(|message| Command::Status { attempt, message });
        let commands = status
            .into_iter()
            .chain([Command::End { attempt, outcome }]);
        match self.commit(known, commands).await {
            Ok(_) => Ok(()),
            Err(super::change::Failed::Store(error)) => Err(error),
            Err(super::change::Failed::Refused(why)) => {
                tracing::info!(task = %cell.id, %why, "a late outcome was dropped");
                Ok(())
            }
        }
    }
}

/// The error of a task whose executor died and that may not run again.
pub(crate) fn outcome_unknown() -> Outcome {
    Outcome::error(
        ErrorCode(-32603),
        "the server stopped while this call was running: its outcome is unknown, and it was not run again",
    )
}

/// Grows from try to try.
#[derive(Debug)]
pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl Pause {
    pub(crate) async fn rest(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(2));
    }
}

/// Turns a panic of the work into its outcome.
async fn unless_it_panics(work: impl Future<Output = Outcome>) -> Outcome {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            Poll::Ready(Outcome::error(
                ErrorCode(-32603),
                "the tool stopped with an internal error (panic)",
            ))
        })
    })
    .await
}
