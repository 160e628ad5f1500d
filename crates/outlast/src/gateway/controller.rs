//! Controls a call at the upstream for our call. It reports the status of the upstream's call for
//! ours, and cancels the upstream's call if ours is cancelled.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{CallContext, Progress};
use outlast_engine::{Origin, Outcome};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::active_calls::ActiveCall;
use super::connection::UpstreamConnection;
use super::{Upstream, errors, reattach, result};
use crate::client::{CallCommand, CallController, CancelError, ExecutionStatus, OutcomeError};
use crate::server::ClientHandle;
use crate::sleep::sleep_until;

/// Controls a call at the upstream.
pub(super) struct UpstreamController {
    connection: Arc<UpstreamConnection>,
    upstream: Arc<str>,
    binding: CallBinding,
    timeout: Option<Duration>,
    stop: StopState,
    report: CallReport,
}

/// Our call.
enum CallBinding {
    /// The context, and the deadline.
    Bound(CallContext, Option<Instant>),
    /// It has no task yet. The status of the upstream's call is sent to the channel meanwhile.
    Pending(
        watch::Receiver<Option<CallContext>>,
        watch::Sender<Option<ExecutionStatus>>,
    ),
}

/// Whether the call is being stopped.
enum StopState {
    NotStopped,
    /// Our caller cancelled it.
    Cancelling(oneshot::Receiver<Result<(), CancelError>>),
    /// Its time limit has passed.
    TimedOut(oneshot::Receiver<Result<(), CancelError>>),
    /// Its time limit has passed; whether the upstream cancelled it.
    GivenUp(bool),
    /// The upstream has responded to the cancellation.
    Cancelled,
}

/// What was reported for our call.
struct CallReport {
    /// Whether progress is reported as status text (BR-PG-2).
    progress_as_text: bool,
    progress: Option<f64>,
    message: Option<String>,
    attached: bool,
    /// Whether the upstream created a task.
    has_task: bool,
    /// The status message of the upstream's task after its end.
    end_message: Option<String>,
}

impl Upstream {
    /// The controller for the call of `cx`.
    pub(super) fn controller(
        &self,
        connection: &Arc<UpstreamConnection>,
        call: &Origin,
        cx: &CallContext,
        client: &ClientHandle,
    ) -> UpstreamController {
        let binding = |timeout| CallBinding::Bound(cx.clone(), deadline_after(timeout));
        self.build_controller(connection, call, client, binding)
    }

    /// The controller of a call that has no task yet, and the status of that call.
    pub(super) fn pending_controller(
        &self,
        connection: &Arc<UpstreamConnection>,
        active_call: &ActiveCall,
        call: &Origin,
        client: &ClientHandle,
    ) -> (UpstreamController, watch::Receiver<Option<ExecutionStatus>>) {
        let (sender, status) = watch::channel(None);
        let binding = active_call
            .binding()
            .unwrap_or_else(|| watch::channel(None).1);
        let controller = self.build_controller(connection, call, client, |_| {
            CallBinding::Pending(binding, sender)
        });
        (controller, status)
    }

    fn build_controller(
        &self,
        connection: &Arc<UpstreamConnection>,
        call: &Origin,
        client: &ClientHandle,
        binding: impl FnOnce(Option<Duration>) -> CallBinding,
    ) -> UpstreamController {
        let tool = call.tool.as_deref();
        let timeout = tool.and_then(|tool| self.settings.timeout(tool));
        UpstreamController {
            connection: connection.clone(),
            upstream: self.name.clone(),
            binding: binding(timeout),
            timeout,
            stop: StopState::NotStopped,
            report: CallReport {
                progress_as_text: !client.receives_progress(call.progress_token.is_some()),
                progress: None,
                message: None,
                attached: false,
                has_task: false,
                end_message: None,
            },
        }
    }
}

impl CallController for UpstreamController {
    async fn command(&mut self) -> CallCommand {
        match &mut self.stop {
            StopState::NotStopped => {}
            StopState::Cancelling(answer) => {
                if let Ok(Err(error)) = answer.await {
                    let (upstream, error) = (&*self.upstream, error.brief());
                    tracing::info!(upstream, error, "could not cancel a call at the upstream");
                }
                self.stop = StopState::Cancelled;
                if let CallBinding::Pending(..) = self.binding {
                    return CallCommand::Detach;
                }
            }
            StopState::TimedOut(answer) => {
                self.stop = StopState::GivenUp(matches!(answer.await, Ok(Ok(()))));
                return CallCommand::Detach;
            }
            StopState::GivenUp(_) | StopState::Cancelled => {}
        }
        if !matches!(self.stop, StopState::NotStopped) {
            return std::future::pending().await;
        }
        let (is_timeout, is_interrupted) = match &mut self.binding {
            CallBinding::Pending(binding, _) => {
                let status = binding.wait_for(Option::is_some).await.ok();
                if let Some(cx) = status.and_then(|status| status.clone()) {
                    self.binding = CallBinding::Bound(cx, deadline_after(self.timeout));
                    return CallCommand::ReportStatus;
                }
                // No runner will take the call.
                (false, false)
            }
            CallBinding::Bound(cx, limit) => tokio::select! {
                biased;
                () = cx.cancelled() => (false, cx.is_interrupted()),
                () = sleep_until(*limit) => (true, false),
            },
        };
        if is_interrupted {
            // The next start resumes the task.
            return CallCommand::Detach;
        }
        let (sender, answer) = oneshot::channel();
        self.stop = if is_timeout {
            StopState::TimedOut(answer)
        } else {
            StopState::Cancelling(answer)
        };
        CallCommand::Cancel(sender)
    }

    async fn changed(&mut self, view: &ExecutionStatus) {
        self.report.has_task |= view.task.is_some();
        self.report.record_end(view);
        match &self.binding {
            CallBinding::Bound(cx, _) => self.report.send(&self.connection, view, cx).await,
            CallBinding::Pending(_, sender) => {
                if view.task.is_some() {
                    sender.send_replace(Some(view.clone()));
                }
            }
        }
    }
}

impl UpstreamController {
    /// Whether the upstream created a task.
    pub(super) fn has_task(&self) -> bool {
        self.report.has_task
    }

    /// The outcome of the call for its caller. Our task gets the last status message of the
    /// upstream's.
    pub(super) fn ended(
        &mut self,
        ended: Result<Outcome, OutcomeError>,
        client: &ClientHandle,
        cx: &CallContext,
    ) -> Result<Outcome, OutcomeError> {
        let cancelled = match &mut self.stop {
            StopState::TimedOut(answer) => matches!(answer.try_recv(), Ok(Ok(()))),
            StopState::GivenUp(cancelled) => *cancelled,
            StopState::NotStopped | StopState::Cancelling(_) | StopState::Cancelled => {
                if let (Ok(_), Some(message)) = (&ended, &self.report.end_message) {
                    cx.end_message(message);
                }
                return ended.map(|outcome| errors::translate(outcome, &self.connection, client));
            }
        };
        let stopped = if cancelled {
            "was cancelled"
        } else {
            "could not be cancelled"
        };
        Ok(result::internal(format!(
            "the call exceeded its time limit (setting `timeoutMs`) and {stopped} at {}",
            self.upstream
        )))
    }
}

impl CallReport {
    /// Records the last status message of the upstream's task: it describes the end, not the work.
    fn record_end(&mut self, view: &ExecutionStatus) {
        let ended = view.task.as_ref().filter(|task| task.status.is_terminal());
        if let Some(message) = ended.and_then(|task| task.message.as_ref()) {
            self.end_message = Some(message.clone());
        }
    }

    /// Reports what has changed.
    async fn send(
        &mut self,
        connection: &UpstreamConnection,
        view: &ExecutionStatus,
        cx: &CallContext,
    ) {
        if let Some(progress) = view
            .progress
            .as_ref()
            .filter(|now| Some(now.progress) != self.progress)
        {
            self.progress = Some(progress.progress);
            let progress = Progress {
                done: progress.progress,
                total: progress.total,
                message: progress.message.as_deref().map(Into::into),
            };
            if self.progress_as_text {
                cx.progress_as_status(&progress);
            }
            cx.progress(progress);
        }
        let Some(task) = &view.task else { return };
        reattach::withdraw_unclaimed(connection, task, cx).await;
        if let Some(message) = task
            .message
            .as_ref()
            .filter(|now| Some(*now) != self.message.as_ref())
            .filter(|_| !task.status.is_terminal())
        {
            cx.status(message);
            self.message = Some(message.clone());
        }
        if let Some(immediate) = view
            .immediate_response
            .as_ref()
            .filter(|_| self.message.is_none())
        {
            // BR-CREATE-9.
            cx.status(immediate);
            self.message = Some(immediate.clone());
        }
        if let Some(reference) = view.reference.as_ref().filter(|_| !self.attached) {
            self.attached = true;
            reattach::attach(connection, reference, cx).await;
            if connection.server().is_modern() {
                // BR-CREATE-6: in V2 the server decides what is a task.
                cx.runs_as_task();
            }
        }
    }
}

fn deadline_after(timeout: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(timeout?)
}
