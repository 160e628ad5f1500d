//! A call that is under way, as its caller sees it: watch it, settle it, cancel it, leave it.

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

/// A call that is under way.
///
/// Dropping it leaves it: a task goes on at its server and can be [resumed](super::Client::resume), a plain call is
/// cancelled, because nobody could ever fetch its result.
#[derive(Debug)]
pub struct Execution {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<ExecutionStatus>,
}

/// How a call stands.
#[derive(Clone, Debug)]
pub struct ExecutionStatus {
    /// What we call the server.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The task, as soon as the server has made one: id, status, message, times.
    pub task: Option<PeerTask>,
    /// What it takes to find the task again.
    pub reference: Option<Arc<TaskReference>>,
    /// How far the work has come, if it says so.
    pub progress: Option<Progress>,
    /// What the server wants the model to hear while the task runs (V1-CREATE-11).
    pub immediate_response: Option<String>,
    /// Whether somebody here asked for a cancellation.
    pub cancelling: bool,
    /// Whether the task's time will soon be over (S4-91).
    pub expiring: bool,
    /// Since when the server does not answer, while it does not.
    pub outage: Option<Outage>,
    /// Why the structured result does not fit the `outputSchema` of the tool, where that is known (V1-TLS-6).
    pub output_mismatch: Option<String>,
    /// How it ended, once it has.
    pub ended: Option<Result<Outcome, OutcomeError>>,
}

/// A time in which the server of a task does not answer. The task is asked for again until its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first request failed.
    pub since: Instant,
    /// Why the last one failed.
    pub why: Error,
}

impl Outage {
    /// The outage after a request failed with `fault`; `None` if the server did answer.
    pub(crate) fn after(before: Option<&Self>, error: &Error) -> Option<Self> {
        let is_silent = matches!(error, Error::Transport(_) | Error::TimedOut(_));
        is_silent.then(|| Self {
            since: before.map_or_else(Instant::now, |before| before.since),
            why: error.clone(),
        })
    }
}

/// News of a call.
#[derive(Clone, Debug)]
pub struct StatusUpdates(watch::Receiver<ExecutionStatus>);

/// Why a call has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutcomeError {
    /// The server has forgotten the task: its time was over (S4-29).
    #[error("task {0} has expired; call the tool again with a longer ttl")]
    Expired(String),
    /// The server does not know the task, or does not say anything sensible about it any more.
    #[error("task {task} is lost: {why}")]
    Lost {
        /// The task.
        task: String,
        /// What the server said last.
        why: Error,
    },
    /// The server has refused the answer to an input request of the task.
    #[error("task {task} cannot go on: the server refused the answer to its input request ({why})")]
    InputResponseRefused {
        /// The task.
        task: String,
        /// What the server said to the answer.
        why: Error,
    },
    /// The call could not be made or was not answered. [`Error::nothing_happened`] says whether it may be repeated.
    #[error(transparent)]
    Request(#[from] Error),
    /// The execution was left before it was over.
    #[error("the execution was left before it was over")]
    Detached,
}

impl OutcomeError {
    /// How long the server wants to be left alone, if it says so.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Lost { why, .. } | Self::Request(why) => why.retry_after(),
            Self::InputResponseRefused { .. } | Self::Expired(_) | Self::Detached => None,
        }
    }

    /// The same for a log: without anything that the server said.
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

/// Why a cancellation did not take place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// The call was over already (S4-55).
    #[error("the call was already finished")]
    Finished,
    /// The server cannot cancel tasks.
    #[error("the server does not support cancelling tasks")]
    Unsupported,
    /// The server did not do it.
    #[error(transparent)]
    Request(#[from] Error),
}

impl CancelError {
    /// The same for a log: without anything that the server said.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Request(error) => error.brief(),
            Self::Finished | Self::Unsupported => self.to_string(),
        }
    }
}

/// What the owner of a call wants.
pub(crate) enum Command {
    Cancel(oneshot::Sender<Result<(), CancelError>>),
    Detach,
    /// To see how the call stands, by [`CallController::changed`].
    ReportStatus,
}

/// The owner of a call that is driven: it sees how the call stands, and decides what becomes of it.
pub(crate) trait CallController: Send {
    /// Waits for the next command. The future is dropped and made again whenever something else happens.
    fn command(&mut self) -> impl Future<Output = Command> + Send;

    /// The call has changed. It does not go on before this is done.
    fn changed(&mut self, status: &ExecutionStatus) -> impl Future<Output = ()> + Send;
}

/// The owner of a call that runs in the background: an [`Execution`] at the other end of two channels.
struct Background {
    commands: mpsc::Receiver<Command>,
    status: Arc<watch::Sender<ExecutionStatus>>,
}

impl CallController for Background {
    async fn command(&mut self) -> Command {
        self.commands.recv().await.unwrap_or(Command::Detach)
    }

    async fn changed(&mut self, status: &ExecutionStatus) {
        self.status.send_replace(status.clone());
    }
}

impl Execution {
    pub(crate) fn begin(call: CheckedCall) -> Self {
        let status = ExecutionStatus::new(call.core.inbound.server.clone(), call.spec.tool.clone());
        let core = call.core.clone();
        Self::driven(core, status.clone(), |mut controller| async move {
            Driver::new(status, &mut controller).call(call).await
        })
    }

    pub(crate) fn continued(core: Arc<Core>, reference: TaskReference) -> Self {
        let status =
            ExecutionStatus::new(core.inbound.server.clone(), reference.tool.as_str().into());
        Self::driven(core.clone(), status.clone(), |mut controller| async move {
            Driver::new(status, &mut controller)
                .resume(core, reference, Vec::new(), None)
                .await
        })
    }

    fn driven<W>(
        core: Arc<Core>,
        status: ExecutionStatus,
        work: impl FnOnce(Background) -> W,
    ) -> Self
    where
        W: Future<Output = Result<Outcome, OutcomeError>> + Send + 'static,
    {
        let (commands, wanted) = mpsc::channel(4);
        let tool = status.tool.clone();
        let (sender, status) = watch::channel(status);
        let sender = Arc::new(sender);
        let work = work(Background {
            commands: wanted,
            status: sender.clone(),
        });
        let driving = async move {
            let ended = work.await.map(without_result_type);
            let mismatch = ended.as_ref().ok();
            let mismatch =
                mismatch.and_then(|outcome| core.tool_cache.output_mismatch(&tool, outcome));
            if let Some(why) = &mismatch {
                tracing::warn!(%tool, why, "a result does not fit the `outputSchema` of its tool");
            }
            sender.send_modify(|status| {
                status.output_mismatch = mismatch;
                status.ended = Some(ended);
            });
        };
        tokio::spawn(driving.in_current_span());
        Self { commands, status }
    }

    /// How it stands.
    pub fn status(&self) -> ExecutionStatus {
        self.status.borrow().clone()
    }

    /// News from now on.
    pub fn updates(&self) -> StatusUpdates {
        StatusUpdates(self.status.clone())
    }

    /// The id of its task, once there is one; `None` if the call ended without.
    pub async fn task(&self) -> Option<String> {
        let mut status = self.status.clone();
        let known = status.wait_for(|status| status.task.is_some() || status.ended.is_some());
        let known = known.await.ok()?;
        known.task.as_ref().map(|task| task.id.clone())
    }

    /// Waits for the end.
    pub async fn outcome(&self) -> Result<Outcome, OutcomeError> {
        let mut status = self.status.clone();
        match status.wait_for(|status| status.ended.is_some()).await {
            Ok(status) => status.ended.clone().unwrap_or(Err(OutcomeError::Detached)),
            Err(_) => Err(OutcomeError::Detached),
        }
    }

    /// CancelWaiters the call. RouteKey a task whose id is not known yet, the wish is kept until it is (A1-25).
    pub async fn cancel(&self) -> Result<(), CancelError> {
        let (sender, result) = oneshot::channel();
        if self.commands.send(Command::Cancel(sender)).await.is_err() {
            return Err(CancelError::Finished);
        }
        result.await.unwrap_or(Err(CancelError::Finished))
    }

    /// Leaves the call: a task goes on at its server, and its id is returned.
    pub async fn detach(self) -> Option<String> {
        let task = self
            .status
            .borrow()
            .task
            .as_ref()
            .map(|task| task.id.clone());
        let _ = self.commands.send(Command::Detach).await;
        task
    }
}

impl StatusUpdates {
    /// How the call stands after something has changed; `None` after the end. One who is slow sees the last of several
    /// changes.
    pub async fn next(&mut self) -> Option<ExecutionStatus> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

impl ExecutionStatus {
    pub(crate) fn new(server: Arc<str>, tool: Arc<str>) -> Self {
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
    async fn an_outage_lasts_from_the_first_failure_until_an_answer() {
        let silent = Error::TimedOut(Duration::from_secs(1));
        let first = Outage::after(None, &silent).expect("the server is silent");
        tokio::time::advance(Duration::from_secs(5)).await;
        let second = Outage::after(Some(&first), &silent).expect("the server is silent");
        assert_eq!(second.since, first.since);
        let answered = Error::Unsupported("tasks".into());
        assert_eq!(Outage::after(Some(&second), &answered), None);
    }
}
