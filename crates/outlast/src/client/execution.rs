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
use super::error::Fault;
use super::outcome::unlabelled;
use super::reference::Reference;

/// A call that is under way.
///
/// Dropping it leaves it: a task goes on at its server and can be [resumed](super::Client::resume), a plain call is
/// cancelled, because nobody could ever fetch its result.
#[derive(Debug)]
pub struct Execution {
    commands: mpsc::Sender<Command>,
    view: watch::Receiver<View>,
}

/// How a call stands.
#[derive(Clone, Debug)]
pub struct View {
    /// What we call the server.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The task, as soon as the server has made one: id, status, message, times.
    pub task: Option<PeerTask>,
    /// What it takes to find the task again.
    pub reference: Option<Arc<Reference>>,
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
    pub ended: Option<Result<Outcome, Unsettled>>,
}

/// A time in which the server of a task does not answer. The task is asked for again until its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first request failed.
    pub since: Instant,
    /// Why the last one failed.
    pub why: Fault,
}

impl Outage {
    /// The outage after a request failed with `fault`; `None` if the server did answer.
    pub(crate) fn after(before: Option<&Self>, fault: &Fault) -> Option<Self> {
        let is_silent = matches!(fault, Fault::Link(_) | Fault::TimedOut(_));
        is_silent.then(|| Self {
            since: before.map_or_else(Instant::now, |before| before.since),
            why: fault.clone(),
        })
    }
}

/// News of a call.
#[derive(Clone, Debug)]
pub struct Updates(watch::Receiver<View>);

/// Why a call has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsettled {
    /// The server has forgotten the task: its time was over (S4-29).
    #[error("task {0} has expired; call the tool again with a longer ttl")]
    Expired(String),
    /// The server does not know the task, or does not say anything sensible about it any more.
    #[error("task {task} is lost: {why}")]
    Lost {
        /// The task.
        task: String,
        /// What the server said last.
        why: Fault,
    },
    /// The server has refused the answer to an input request of the task.
    #[error("task {task} cannot go on: the server refused the answer to its input request ({why})")]
    Undelivered {
        /// The task.
        task: String,
        /// What the server said to the answer.
        why: Fault,
    },
    /// The call could not be made or was not answered. [`Fault::nothing_happened`] says whether it may be repeated.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The execution was left before it was over.
    #[error("the execution was left before it was over")]
    Left,
}

impl Unsettled {
    /// How long the server wants to be left alone, if it says so.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Lost { why, .. } | Self::Fault(why) => why.retry_after(),
            Self::Undelivered { .. } | Self::Expired(_) | Self::Left => None,
        }
    }

    /// The same for a log: without anything that the server said.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Lost { why, .. } => format!("the task is lost: {}", why.brief()),
            Self::Undelivered { why, .. } => {
                format!("the server refused an input response: {}", why.brief())
            }
            Self::Fault(fault) => fault.brief(),
            other => other.to_string(),
        }
    }
}

/// Why a cancellation did not take place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCancelled {
    /// The call was over already (S4-55).
    #[error("the call was already finished")]
    Finished,
    /// The server cannot cancel tasks.
    #[error("the server does not support cancelling tasks")]
    Unsupported,
    /// The server did not do it.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl NotCancelled {
    /// The same for a log: without anything that the server said.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Fault(fault) => fault.brief(),
            Self::Finished | Self::Unsupported => self.to_string(),
        }
    }
}

/// What the owner of a call wants.
pub(crate) enum Command {
    Cancel(oneshot::Sender<Result<(), NotCancelled>>),
    Leave,
    /// To see how the call stands, by [`CallOwner::changed`].
    Show,
}

/// The owner of a call that is driven: it sees how the call stands, and decides what becomes of it.
pub(crate) trait CallOwner: Send {
    /// Waits for the next command. The future is dropped and made again whenever something else happens.
    fn command(&mut self) -> impl Future<Output = Command> + Send;

    /// The call has changed. It does not go on before this is done.
    fn changed(&mut self, view: &View) -> impl Future<Output = ()> + Send;
}

/// The owner of a call that runs in the background: an [`Execution`] at the other end of two channels.
struct Background {
    commands: mpsc::Receiver<Command>,
    view: Arc<watch::Sender<View>>,
}

impl CallOwner for Background {
    async fn command(&mut self) -> Command {
        self.commands.recv().await.unwrap_or(Command::Leave)
    }

    async fn changed(&mut self, view: &View) {
        self.view.send_replace(view.clone());
    }
}

impl Execution {
    pub(crate) fn begin(call: CheckedCall) -> Self {
        let view = View::new(call.core.ears.server.clone(), call.spec.tool.clone());
        let core = call.core.clone();
        Self::driven(core, view.clone(), |mut owner| async move {
            Driver::new(view, &mut owner).call(call).await
        })
    }

    pub(crate) fn continued(core: Arc<Core>, reference: Reference) -> Self {
        let view = View::new(core.ears.server.clone(), reference.tool.as_str().into());
        Self::driven(core.clone(), view.clone(), |mut owner| async move {
            Driver::new(view, &mut owner)
                .resume(core, reference, Vec::new(), None)
                .await
        })
    }

    fn driven<W>(core: Arc<Core>, view: View, work: impl FnOnce(Background) -> W) -> Self
    where
        W: Future<Output = Result<Outcome, Unsettled>> + Send + 'static,
    {
        let (commands, wanted) = mpsc::channel(4);
        let tool = view.tool.clone();
        let (tell, view) = watch::channel(view);
        let tell = Arc::new(tell);
        let work = work(Background {
            commands: wanted,
            view: tell.clone(),
        });
        let driving = async move {
            let ended = work.await.map(unlabelled);
            let mismatch = ended.as_ref().ok();
            let mismatch = mismatch.and_then(|outcome| core.shelf.output_mismatch(&tool, outcome));
            if let Some(why) = &mismatch {
                tracing::warn!(%tool, why, "a result does not fit the `outputSchema` of its tool");
            }
            tell.send_modify(|view| {
                view.output_mismatch = mismatch;
                view.ended = Some(ended);
            });
        };
        tokio::spawn(driving.in_current_span());
        Self { commands, view }
    }

    /// How it stands.
    pub fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// News from now on.
    pub fn updates(&self) -> Updates {
        Updates(self.view.clone())
    }

    /// The id of its task, once there is one; `None` if the call ended without.
    pub async fn task(&self) -> Option<String> {
        let mut view = self.view.clone();
        let known = view.wait_for(|view| view.task.is_some() || view.ended.is_some());
        let known = known.await.ok()?;
        known.task.as_ref().map(|task| task.id.clone())
    }

    /// Waits for the end.
    pub async fn settle(&self) -> Result<Outcome, Unsettled> {
        let mut view = self.view.clone();
        match view.wait_for(|view| view.ended.is_some()).await {
            Ok(view) => view.ended.clone().unwrap_or(Err(Unsettled::Left)),
            Err(_) => Err(Unsettled::Left),
        }
    }

    /// Cancels the call. Of a task whose id is not known yet, the wish is kept until it is (A1-25).
    pub async fn cancel(&self) -> Result<(), NotCancelled> {
        let (tell, told) = oneshot::channel();
        if self.commands.send(Command::Cancel(tell)).await.is_err() {
            return Err(NotCancelled::Finished);
        }
        told.await.unwrap_or(Err(NotCancelled::Finished))
    }

    /// Leaves the call: a task goes on at its server, and its id is returned.
    pub async fn detach(self) -> Option<String> {
        let task = self.view.borrow().task.as_ref().map(|task| task.id.clone());
        let _ = self.commands.send(Command::Leave).await;
        task
    }
}

impl Updates {
    /// How the call stands after something has changed; `None` after the end. One who is slow sees the last of several
    /// changes.
    pub async fn next(&mut self) -> Option<View> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

impl View {
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
        let silent = Fault::TimedOut(Duration::from_secs(1));
        let first = Outage::after(None, &silent).expect("the server is silent");
        tokio::time::advance(Duration::from_secs(5)).await;
        let second = Outage::after(Some(&first), &silent).expect("the server is silent");
        assert_eq!(second.since, first.since);
        let answered = Fault::Unsupported("tasks".into());
        assert_eq!(Outage::after(Some(&second), &answered), None);
    }
}
