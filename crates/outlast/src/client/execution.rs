//! A running call as its caller sees it: read its status, wait for its outcome, cancel it, detach
//! from it.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::PeerTask;
use outlast_wire::notice::Progress;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::Instrument;

use super::call::CheckedCall;
use super::client::Core;
use super::driver::Driver;
use super::error::Error;
use super::outcome::without_result_type;
use super::reference::TaskReference;

/// A running call.
///
/// Dropping it detaches from the call. A task runs on at its server and can be
/// [resumed](super::Client::resume). A call without a task is cancelled, because its result could
/// not be fetched later.
///
/// ```no_run
/// use outlast::prelude::*;
///
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let execution = client.call_tool("research", ()).await?;
/// let mut updates = execution.updates();
/// while let Some(status) = updates.next().await {
///     if let Some(progress) = &status.progress {
///         println!("{} of {:?}", progress.progress, progress.total);
///     }
/// }
/// println!("{:?}", execution.outcome().await?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Execution {
    commands: mpsc::Sender<CallCommand>,
    status: watch::Receiver<ExecutionStatus>,
}

/// The status of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutionStatus {
    /// The name of the server.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The task, once the server has created one.
    pub task: Option<PeerTask>,
    /// The reference with which the task can be resumed.
    pub reference: Option<Arc<TaskReference>>,
    /// The latest progress, if the server reports any.
    pub progress: Option<Progress>,
    /// The text that the server has for the model while the task runs (V1-CREATE-11).
    pub immediate_response: Option<String>,
    /// Whether a cancellation was requested here.
    pub cancelling: bool,
    /// Whether the TTL of the task ends soon (S4-91).
    pub expiring: bool,
    /// The current outage of the server, if there is one.
    pub outage: Option<Outage>,
    /// Why the structured result does not match the `outputSchema` of the tool, if it does not
    /// (V1-TLS-6).
    pub output_mismatch: Option<String>,
    /// The outcome, once the call has ended.
    pub ended: Option<Result<Outcome, OutcomeError>>,
}

/// A period in which the server of a task does not respond. The task is polled until its TTL ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first request failed.
    pub since: Instant,
    /// Why the last one failed.
    pub why: Error,
}

impl Outage {
    /// The outage after a request failed with `error`; `None` if the server did respond.
    pub(crate) fn after(before: Option<&Self>, error: &Error) -> Option<Self> {
        let is_silent = matches!(error, Error::Transport(_) | Error::TimedOut(_));
        is_silent.then(|| Self {
            since: before.map_or_else(Instant::now, |before| before.since),
            why: error.clone(),
        })
    }
}

/// The status changes of a call.
#[derive(Clone, Debug)]
pub struct StatusUpdates(watch::Receiver<ExecutionStatus>);

/// Why a call has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutcomeError {
    /// The server has dropped the task because its TTL ended (S4-29).
    #[error("task {0} has expired; call the tool again with a longer ttl")]
    Expired(String),
    /// The server does not know the task, or its responses about it are invalid.
    #[error("task {task} is lost: {why}")]
    Lost {
        /// The task.
        task: String,
        /// The last error.
        why: Error,
    },
    /// The server refused an input response of the task.
    #[error("task {task} cannot continue: the server refused an input response ({why})")]
    InputResponseRefused {
        /// The task.
        task: String,
        /// The server's error.
        why: Error,
    },
    /// The call could not be sent, or has no response. [`Error::server_has_not_acted`] says whether
    /// it may be sent again.
    #[error(transparent)]
    Request(#[from] Error),
    /// The execution was detached before the call ended.
    #[error("the execution was detached before the call ended")]
    Detached,
}

impl OutcomeError {
    /// The delay that the server asks for, if it does.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Lost { why, .. } | Self::Request(why) => why.retry_after(),
            Self::InputResponseRefused { .. } | Self::Expired(_) | Self::Detached => None,
        }
    }

    /// The error for a log, without text from the server.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Lost { why, .. } => format!("the task is lost: {}", why.brief()),
            Self::InputResponseRefused { why, .. } => {
                format!("the server refused an input response: {}", why.brief())
            }
            Self::Request(error) => error.brief(),
            other => other.to_string(),
        }
    }
}

/// Why a cancellation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// The call had already ended (S4-55).
    #[error("the call was already finished")]
    Finished,
    /// The server does not support cancellation.
    #[error("the server does not support cancelling tasks")]
    Unsupported,
    /// The request failed.
    #[error(transparent)]
    Request(#[from] Error),
}

impl CancelError {
    /// The error for a log, without text from the server.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Request(error) => error.brief(),
            Self::Finished | Self::Unsupported => self.to_string(),
        }
    }
}

/// A command to the driver of a call.
pub(crate) enum CallCommand {
    Cancel(oneshot::Sender<Result<(), CancelError>>),
    Detach,
    /// Report the status by [`CallController::changed`].
    ReportStatus,
}

/// Controls a running call: receives its status and issues commands.
pub(crate) trait CallController: Send {
    /// Waits for the next command. The future is dropped and created again after every other event.
    fn command(&mut self) -> impl Future<Output = CallCommand> + Send;

    /// The status has changed. The call continues when this returns.
    fn changed(&mut self, status: &ExecutionStatus) -> impl Future<Output = ()> + Send;
}

/// The controller of a call that runs in the background. Two channels connect it to its
/// [`Execution`].
struct BackgroundController {
    commands: mpsc::Receiver<CallCommand>,
    status: Arc<watch::Sender<ExecutionStatus>>,
}

impl CallController for BackgroundController {
    async fn command(&mut self) -> CallCommand {
        self.commands.recv().await.unwrap_or(CallCommand::Detach)
    }

    async fn changed(&mut self, status: &ExecutionStatus) {
        self.status.send_replace(status.clone());
    }
}

impl Execution {
    pub(crate) fn start(call: CheckedCall) -> Self {
        let status = ExecutionStatus::new(call.core.inbound.server.clone(), call.spec.tool.clone());
        let core = call.core.clone();
        Self::spawn(core, status.clone(), |mut controller| async move {
            Driver::new(status, &mut controller).call(call).await
        })
    }

    pub(crate) fn resume(core: Arc<Core>, reference: TaskReference) -> Self {
        let status =
            ExecutionStatus::new(core.inbound.server.clone(), reference.tool.as_str().into());
        Self::spawn(core.clone(), status.clone(), |mut controller| async move {
            Driver::new(status, &mut controller)
                .resume(core, reference, Vec::new(), None)
                .await
        })
    }

    fn spawn<W>(
        core: Arc<Core>,
        status: ExecutionStatus,
        work: impl FnOnce(BackgroundController) -> W,
    ) -> Self
    where
        W: Future<Output = Result<Outcome, OutcomeError>> + Send + 'static,
    {
        let (commands, wanted) = mpsc::channel(4);
        let tool = status.tool.clone();
        let (sender, status) = watch::channel(status);
        let sender = Arc::new(sender);
        let work = work(BackgroundController {
            commands: wanted,
            status: sender.clone(),
        });
        let driving = async move {
            let ended = work.await.map(without_result_type);
            let mismatch = ended.as_ref().ok();
            let mismatch =
                mismatch.and_then(|outcome| core.tool_cache.output_mismatch(&tool, outcome));
            if let Some(why) = &mismatch {
                tracing::warn!(%tool, why, "the result does not match the `outputSchema` of the tool");
            }
            sender.send_modify(|status| {
                status.output_mismatch = mismatch;
                status.ended = Some(ended);
            });
        };
        tokio::spawn(driving.in_current_span());
        Self { commands, status }
    }

    /// The current status.
    pub fn status(&self) -> ExecutionStatus {
        self.status.borrow().clone()
    }

    /// The status changes from now on.
    pub fn updates(&self) -> StatusUpdates {
        StatusUpdates(self.status.clone())
    }

    /// Waits for the id of the task; `None` if the call ended without a task.
    pub async fn task(&self) -> Option<String> {
        let mut status = self.status.clone();
        let known = status.wait_for(|status| status.task.is_some() || status.ended.is_some());
        let known = known.await.ok()?;
        known.task.as_ref().map(|task| task.id.clone())
    }

    /// Waits for the outcome.
    pub async fn outcome(&self) -> Result<Outcome, OutcomeError> {
        let mut status = self.status.clone();
        match status.wait_for(|status| status.ended.is_some()).await {
            Ok(status) => status.ended.clone().unwrap_or(Err(OutcomeError::Detached)),
            Err(_) => Err(OutcomeError::Detached),
        }
    }

    /// Cancels the call. If the id of its task is not known yet, the task is cancelled when it is
    /// (A1-25).
    pub async fn cancel(&self) -> Result<(), CancelError> {
        let (sender, result) = oneshot::channel();
        if self
            .commands
            .send(CallCommand::Cancel(sender))
            .await
            .is_err()
        {
            return Err(CancelError::Finished);
        }
        result.await.unwrap_or(Err(CancelError::Finished))
    }

    /// Detaches from the call and returns the id of its task, which runs on at the server.
    pub async fn detach(&self) -> Option<String> {
        let task = self
            .status
            .borrow()
            .task
            .as_ref()
            .map(|task| task.id.clone());
        let _ = self.commands.send(CallCommand::Detach).await;
        task
    }
}

impl StatusUpdates {
    /// Waits for the next change and returns the status; `None` after the end. A slow reader gets
    /// only the latest of several changes.
    pub async fn next(&mut self) -> Option<ExecutionStatus> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

impl ExecutionStatus {
    /// The status of a call that has just begun.
    pub fn new(server: Arc<str>, tool: Arc<str>) -> Self {
        Self {
            server,
            tool,
            task: None,
            reference: None,
            progress: None,
            immediate_response: None,
            cancelling: false,
            expiring: false,
            outage: None,
            output_mismatch: None,
            ended: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_lasts_from_first_failure_until_a_response() {
        let silent = Error::TimedOut(Duration::from_secs(1));
        let first = Outage::after(None, &silent).expect("the server is silent");
        tokio::time::advance(Duration::from_secs(5)).await;
        let second = Outage::after(Some(&first), &silent).expect("the server is silent");
        assert_eq!(second.since, first.since);
        let answered = Error::Unsupported("tasks".into());
        assert_eq!(Outage::after(Some(&second), &answered), None);
    }
}
