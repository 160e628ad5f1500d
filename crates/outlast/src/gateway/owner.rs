//! Controls a call at the upstream for our call. It reports the status of the upstream's call for
//! ours, and cancels the upstream's call if ours is cancelled.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::{CallContext, Progress};
use outlast_engine::{Origin, Outcome};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::active_calls::UnderWay;
use super::connection::Connection;
use super::{Upstream, again, errors, result};
use crate::client::{CallController, CancelError, Command, ExecutionStatus, OutcomeError};
use crate::server::ClientHandle;
use crate::sleep::sleep_until;

/// Controls a call at the upstream.
pub(super) struct UpstreamOwner {
    connection: Arc<Connection>,
    upstream: Arc<str>,
    whose: Whose,
    timeout: Option<Duration>,
    stop: Stop,
    shown: Shown,
}

/// Our call.
enum Whose {
    /// The context, and the deadline.
    Known(CallContext, Option<Instant>),
    /// It has no task yet. The status of the upstream's call is sent to the channel meanwhile.
    Unknown(
        watch::Receiver<Option<CallContext>>,
        watch::Sender<Option<ExecutionStatus>>,
    ),
}

/// Whether the call is being stopped.
enum Stop {
    No,
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
struct Shown {
    /// Whether progress is reported as status text (BR-PG-2).
    in_words: bool,
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
    pub(super) fn owner(
        &self,
        connection: &Arc<Connection>,
        call: &Origin,
        cx: &CallContext,
        client: &ClientHandle,
    ) -> UpstreamOwner {
        let whose = |timeout| Whose::Known(cx.clone(), after(timeout));
        self.owner_of(connection, call, client, whose)
    }

    /// The controller of a call that has no task yet, and the status of that call.
    pub(super) fn owner_before_task(
        &self,
        connection: &Arc<Connection>,
        under_way: &UnderWay,
        call: &Origin,
        client: &ClientHandle,
    ) -> (UpstreamOwner, watch::Receiver<Option<ExecutionStatus>>) {
        let (tell, known) = watch::channel(None);
        let whose = under_way.whose().unwrap_or_else(|| watch::channel(None).1);
        let owner = self.owner_of(connection, call, client, |_| Whose::Unknown(whose, tell));
        (owner, known)
    }

    fn owner_of(
        &self,
        connection: &Arc<Connection>,
        call: &Origin,
        client: &ClientHandle,
        whose: impl FnOnce(Option<Duration>) -> Whose,
    ) -> UpstreamOwner {
        let tool = call.tool.as_deref();
        let timeout = tool.and_then(|tool| self.settings.timeout(tool));
        UpstreamOwner {
            connection: connection.clone(),
            upstream: self.name.clone(),
            whose: whose(timeout),
            timeout,
            stop: Stop::No,
            shown: Shown {
                in_words: !client.receives_progress(call.progress_token.is_some()),
                progress: None,
                message: None,
                attached: false,
                has_task: false,
                end_message: None,
            },
        }
    }
}

impl CallController for UpstreamOwner {
    async fn command(&mut self) -> Command {
        match &mut self.stop {
            Stop::No => {}
            Stop::Cancelling(answer) => {
                if let Ok(Err(error)) = answer.await {
                    let (upstream, error) = (&*self.upstream, error.brief());
                    tracing::info!(upstream, error, "could not cancel a call at the upstream");
                }
                self.stop = Stop::Cancelled;
                if let Whose::Unknown(..) = self.whose {
                    return Command::Detach;
                }
            }
            Stop::TimedOut(answer) => {
                self.stop = Stop::GivenUp(matches!(answer.await, Ok(Ok(()))));
                return Command::Detach;
            }
            Stop::GivenUp(_) | Stop::Cancelled => {}
        }
        if !matches!(self.stop, Stop::No) {
            return std::future::pending().await;
        }
        let (is_timeout, is_left) = match &mut self.whose {
            Whose::Unknown(whose, _) => {
                let known = whose.wait_for(Option::is_some).await.ok();
                if let Some(cx) = known.and_then(|known| known.clone()) {
                    self.whose = Whose::Known(cx, after(self.timeout));
                    return Command::ReportStatus;
                }
                // No runner will take the call.
                (false, false)
            }
            Whose::Known(cx, limit) => tokio::select! {
                biased;
                () = cx.cancelled() => (false, cx.is_interrupted()),
                () = sleep_until(*limit) => (true, false),
            },
        };
        if is_left {
            // The next start resumes the task.
            return Command::Detach;
        }
        let (tell, answer) = oneshot::channel();
        self.stop = if is_timeout {
            Stop::TimedOut(answer)
        } else {
            Stop::Cancelling(answer)
        };
        Command::Cancel(tell)
    }

    async fn changed(&mut self, view: &ExecutionStatus) {
        self.shown.has_task |= view.task.is_some();
        self.shown.note_end(view);
        match &self.whose {
            Whose::Known(cx, _) => self.shown.show(&self.connection, view, cx).await,
            Whose::Unknown(_, tell) => {
                if view.task.is_some() {
                    tell.send_replace(Some(view.clone()));
                }
            }
        }
    }
}

impl UpstreamOwner {
    /// Whether the upstream created a task.
    pub(super) fn has_task(&self) -> bool {
        self.shown.has_task
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
            Stop::TimedOut(answer) => matches!(answer.try_recv(), Ok(Ok(()))),
            Stop::GivenUp(cancelled) => *cancelled,
            Stop::No | Stop::Cancelling(_) | Stop::Cancelled => {
                if let (Ok(_), Some(message)) = (&ended, &self.shown.end_message) {
                    cx.end_message(message);
                }
                return ended.map(|outcome| errors::across(outcome, &self.connection, client));
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

impl Shown {
    /// Records the last status message of the upstream's task: it describes the end, not the work.
    fn note_end(&mut self, view: &ExecutionStatus) {
        let ended = view.task.as_ref().filter(|task| task.status.is_terminal());
        if let Some(message) = ended.and_then(|task| task.message.as_ref()) {
            self.end_message = Some(message.clone());
        }
    }

    /// Reports what has changed.
    async fn show(&mut self, connection: &Connection, view: &ExecutionStatus, cx: &CallContext) {
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
            if self.in_words {
                cx.progress_as_status(&progress);
            }
            cx.progress(progress);
        }
        let Some(task) = &view.task else { return };
        again::take_back_left(connection, task, cx).await;
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
            again::attach(connection, reference, cx).await;
            if connection.server().is_modern() {
                // BR-CREATE-6: in V2 the server decides what is a task.
                cx.runs_as_task();
            }
        }
    }
}

fn after(timeout: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(timeout?)
}
