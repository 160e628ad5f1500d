//! The state of a call that runs in this process and is not stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_wire::Timestamp;
use tokio::sync::{Notify, oneshot};

use super::cancellation::Cancellation;
use super::{LocalData, Progress};
use crate::id::{Attempt, InputKey, TaskId};
use crate::input::InputResponse;
use crate::origin::Origin;
use crate::outcome::Outcome;
use crate::owner::Owner;
use crate::runtime::{Mutex, MutexGuard};
use crate::store::Committed;
use crate::task::Task;
use crate::transition::{Command, Effects, Next, Refused};

/// One attempt at one call in this process.
#[derive(Debug)]
pub(crate) struct CallState {
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) owner: Owner,
    pub(crate) origin: Arc<Origin>,
    /// Data for the runner. `None` after a restart.
    pub(crate) local_data: Option<LocalData>,
    pub(crate) cancellation: Cancellation,
    /// Notified when a promotion is decided.
    pub(crate) decided: Notify,
    fields: Mutex<CallFields>,
}

#[derive(Debug)]
struct CallFields {
    stage: CallStage,
    updates: PendingUpdates,
    /// The final status text, in place of the one of the outcome.
    end_message: Option<Arc<str>>,
    /// Whether the store may contain it as a task although it is not one.
    has_unresolved_insert: bool,
    progress: Option<Progress>,
    /// The number of input requests of this attempt.
    input_requests: u32,
    /// Whether the work is left to the next start of the engine.
    interrupted: bool,
    response_senders: BTreeMap<InputKey, oneshot::Sender<InputResponse>>,
}

/// The updates that the status writer has not stored yet.
#[derive(Debug, Default)]
struct PendingUpdates {
    /// The newest status text that is not stored yet.
    status: Option<Arc<str>>,
    /// The newest status text of the work, stored or not.
    last_status: Option<Arc<str>>,
    /// Input responses that the runner has used and that are not stored as confirmed yet.
    confirmations: Vec<InputKey>,
    /// Whether the call is queued in the status writer, or being stored by it.
    is_queued: bool,
}

/// The stages from a call to a task.
#[derive(Debug)]
pub(crate) enum CallStage {
    /// No client has a handle. The state exists only here.
    Plain(Arc<Task>, Option<oneshot::Sender<Outcome>>),
    /// The store is inserting it. If the call ends in the meantime, the outcome waits here.
    Promoting(Arc<Task>, Option<oneshot::Sender<Outcome>>, Option<Outcome>),
    /// The store is inserting it, and the work starts after that.
    Storing,
    /// It is a task. This is the newest revision seen here.
    Stored(Committed<Task>),
    /// The call has ended.
    Ended,
}

/// How a command is applied to a call.
pub(crate) enum Application {
    /// It was applied here, because the call is not a task: the call, and the effects. `None` if
    /// nothing changed.
    Plain(Option<(Arc<Task>, Effects)>),
    /// The store is inserting the call. The command must wait until that is decided.
    Undecided(Command),
    /// The call is a task, so the command must change the store.
    Stored(Command),
}

/// What remains to be done at the end of a call.
pub(crate) enum CallEnd {
    /// The call is not a task: its caller gets the outcome.
    Plain(Option<oneshot::Sender<Outcome>>, Outcome),
    /// The call is a task: the end must be stored.
    Stored {
        task: Committed<Task>,
        /// A status text that is not stored yet.
        status: Option<Arc<str>>,
        /// The status text after the end.
        message: Option<Arc<str>>,
        outcome: Outcome,
    },
    /// Nothing: a promotion delivers the outcome, or the call has ended before.
    Nothing,
}

impl CallState {
    pub(crate) fn new(task: &Task, stage: CallStage, local_data: Option<LocalData>) -> Self {
        Self {
            id: task.id,
            attempt: task.attempt,
            owner: task.owner.clone(),
            origin: task.origin.clone(),
            local_data,
            cancellation: Cancellation::default(),
            decided: Notify::new(),
            fields: Mutex::new(CallFields {
                stage,
                updates: PendingUpdates::default(),
                end_message: None,
                has_unresolved_insert: false,
                progress: None,
                input_requests: 0,
                interrupted: false,
                response_senders: BTreeMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallFields> {
        self.fields.lock()
    }

    /// Whether no client has a handle, and none is about to get one.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.lock().stage, CallStage::Plain(..))
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.lock().stage, CallStage::Ended)
    }

    /// Whether the engine has left the work to its next start.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// A copy of the call as it is now, unless it has ended.
    pub(crate) fn snapshot(&self) -> Option<Task> {
        match &self.lock().stage {
            CallStage::Plain(task, _) | CallStage::Promoting(task, ..) => Some(Task::clone(task)),
            CallStage::Stored(task) => Some(Task::clone(task)),
            CallStage::Storing | CallStage::Ended => None,
        }
    }

    /// Records that the store has the task. Returns false if the call was stopped before it could
    /// start.
    pub(crate) fn mark_stored(&self, task: Committed<Task>) -> bool {
        let mut fields = self.lock();
        let waits = matches!(fields.stage, CallStage::Storing);
        if waits {
            fields.stage = CallStage::Stored(task);
        }
        waits
    }

    /// Whether the call is or was a task.
    pub(crate) fn was_stored(&self) -> bool {
        matches!(self.lock().stage, CallStage::Stored(_) | CallStage::Ended)
    }

    /// Ends the call here: aborts its work and drops its pending input requests.
    pub(crate) fn abort(&self) {
        let (before, waiting) = {
            let mut fields = self.lock();
            let before = std::mem::replace(&mut fields.stage, CallStage::Ended);
            fields.interrupted = !matches!(before, CallStage::Plain(..) | CallStage::Ended);
            (before, std::mem::take(&mut fields.response_senders))
        };
        drop(before);
        self.cancellation.abort();
        // Every pending input request resolves as withdrawn.
        drop(waiting);
    }

    /// Records a newer revision.
    pub(crate) fn update_newest(&self, task: &Committed<Task>) {
        let mut fields = self.lock();
        if let CallStage::Stored(known) = &fields.stage
            && known.revision < task.revision
            && task.attempt == self.attempt
        {
            fields.stage = CallStage::Stored(task.clone());
        }
    }

    /// Returns the newest revision seen here, if the call is a task.
    pub(crate) fn newest(&self) -> Option<Committed<Task>> {
        match &self.lock().stage {
            CallStage::Stored(task) => Some(task.clone()),
            CallStage::Plain(..)
            | CallStage::Promoting(..)
            | CallStage::Storing
            | CallStage::Ended => None,
        }
    }

    /// Applies `command` if the call is not a task.
    pub(crate) fn apply(&self, command: Command, now: Timestamp) -> Result<Application, Refused> {
        match &mut self.lock().stage {
            CallStage::Stored(_) => Ok(Application::Stored(command)),
            CallStage::Ended => Err(Refused::CallEnded),
            CallStage::Promoting(..) | CallStage::Storing => Ok(Application::Undecided(command)),
            CallStage::Plain(task, _) => {
                let step = task.clone().apply(command, now)?;
                let Next::Stored(next, _) = step.next else {
                    return Ok(Application::Plain(None));
                };
                *task = next.clone();
                Ok(Application::Plain(Some((next, step.effects))))
            }
        }
    }

    /// Begins to make the call a task: the copy to store. `None` if the call has ended.
    pub(crate) fn begin_promotion(&self) -> Option<Arc<Task>> {
        let mut fields = self.lock();
        match std::mem::replace(&mut fields.stage, CallStage::Ended) {
            CallStage::Plain(task, sender) => {
                let copy = Arc::new(Task::clone(&task));
                fields.stage = CallStage::Promoting(task, sender, None);
                Some(copy)
            }
            other => {
                fields.stage = other;
                None
            }
        }
    }

    /// Ends the promotion with the task that was stored, or without one. Returns the outcome if the
    /// call has ended in the meantime.
    pub(crate) fn end_promotion(&self, stored: Option<&Committed<Task>>) -> Option<Outcome> {
        let ended = {
            let mut fields = self.lock();
            match (
                std::mem::replace(&mut fields.stage, CallStage::Ended),
                stored,
            ) {
                (CallStage::Promoting(_, _, Some(outcome)), _) => Some(outcome),
                (CallStage::Promoting(task, sender, None), None) => {
                    fields.stage = CallStage::Plain(task, sender);
                    None
                }
                (CallStage::Promoting(_, _, None), Some(task)) => {
                    fields.stage = CallStage::Stored(task.clone());
                    None
                }
                // Stopped in the meantime.
                (_, _) => Some(Outcome::Cancelled),
            }
        };
        self.decided.notify_waiters();
        ended
    }

    /// Ends the call with `outcome`.
    pub(crate) fn finish(&self, outcome: Outcome) -> CallEnd {
        let mut fields = self.lock();
        match std::mem::replace(&mut fields.stage, CallStage::Ended) {
            CallStage::Plain(_, caller) => CallEnd::Plain(caller, outcome),
            CallStage::Promoting(task, caller, _) => {
                // The promotion decides how the outcome is delivered.
                fields.stage = CallStage::Promoting(task, caller, Some(outcome));
                CallEnd::Nothing
            }
            CallStage::Stored(task) => CallEnd::Stored {
                task,
                status: fields.updates.status.take(),
                message: fields.end_message.take(),
                outcome,
            },
            // A call does not run before it is stored.
            CallStage::Storing | CallStage::Ended => CallEnd::Nothing,
        }
    }

    /// Whether the store may contain the call as a task although it is not one.
    pub(crate) fn has_unresolved_insert(&self) -> bool {
        self.lock().has_unresolved_insert
    }

    pub(crate) fn set_unresolved_insert(&self, is_unresolved: bool) {
        self.lock().has_unresolved_insert = is_unresolved;
    }

    /// Sets the status text. Returns whether the status writer must be notified.
    pub(crate) fn set_status(&self, message: Arc<str>) -> bool {
        self.update(|updates| {
            updates.last_status = Some(message.clone());
            updates.status = Some(message);
        })
    }

    /// Sets a status text that is made from the last one of [`set_status`](Self::set_status).
    /// Returns whether the status writer must be notified.
    pub(crate) fn extend_status(&self, text: impl FnOnce(Option<&str>) -> Arc<str>) -> bool {
        self.update(|updates| updates.status = Some(text(updates.last_status.as_deref())))
    }

    /// Confirms an input response with the next update. Returns whether the status writer must be
    /// notified.
    pub(crate) fn confirm_soon(&self, key: InputKey) -> bool {
        self.update(|updates| updates.confirmations.push(key))
    }

    /// Changes the pending updates, unless the call has ended. Returns whether the call was not
    /// queued before.
    fn update(&self, change: impl FnOnce(&mut PendingUpdates)) -> bool {
        let mut fields = self.lock();
        if matches!(fields.stage, CallStage::Ended) {
            return false;
        }
        change(&mut fields.updates);
        !std::mem::replace(&mut fields.updates.is_queued, true)
    }

    /// Whether updates are pending. If not, the next update queues the call again.
    pub(crate) fn has_pending_updates(&self) -> bool {
        let updates = &mut self.lock().updates;
        updates.is_queued = updates.status.is_some() || !updates.confirmations.is_empty();
        updates.is_queued
    }

    /// Takes the pending updates.
    pub(crate) fn take_pending_updates(&self) -> Vec<Command> {
        let attempt = self.attempt;
        let (status, confirmed) = {
            let updates = &mut self.lock().updates;
            (
                updates.status.take(),
                std::mem::take(&mut updates.confirmations),
            )
        };
        let status = status.map(|message| Command::Status { attempt, message });
        let confirmed = confirmed
            .into_iter()
            .map(|key| Command::ConfirmInput { attempt, key });
        confirmed.chain(status).collect()
    }

    /// Restores updates that were not stored, unless newer ones exist.
    pub(crate) fn restore_updates(&self, commands: Vec<Command>) {
        let updates = &mut self.lock().updates;
        for command in commands {
            match command {
                Command::Status { message, .. } => {
                    updates.status.get_or_insert(message);
                }
                Command::ConfirmInput { key, .. } => updates.confirmations.push(key),
                _ => {}
            }
        }
    }

    /// Sets the status text after the end.
    pub(crate) fn set_end_message(&self, message: Arc<str>) {
        self.lock().end_message = Some(message);
    }

    /// The newest progress.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.lock().progress.clone()
    }

    /// Records progress. Returns false if it does not grow, or the call has ended.
    pub(crate) fn advance(&self, progress: &Progress) -> bool {
        let mut fields = self.lock();
        let last = fields.progress.as_ref();
        let grows = last.is_none_or(|last| progress.done > last.done);
        if !grows || matches!(fields.stage, CallStage::Ended) {
            return false;
        }
        fields.progress = Some(progress.clone());
        true
    }

    /// Returns a key that no input request of this task has used.
    pub(crate) fn fresh_key(&self) -> InputKey {
        let mut fields = self.lock();
        fields.input_requests += 1;
        InputKey::new(format!("ask-{}-{}", self.attempt.0, fields.input_requests))
    }

    /// Returns a receiver for the input response to `key`.
    pub(crate) fn expect_response(&self, key: InputKey) -> oneshot::Receiver<InputResponse> {
        let (sender, received) = oneshot::channel();
        self.lock().response_senders.insert(key, sender);
        received
    }

    /// Whether the work still awaits the input response to `key`.
    pub(crate) fn expects(&self, key: &InputKey) -> bool {
        self.lock().response_senders.contains_key(key)
    }

    pub(crate) fn forget_response(&self, key: &InputKey) {
        self.lock().response_senders.remove(key);
    }

    pub(crate) fn deliver(&self, key: &InputKey, response: &InputResponse) {
        let waiting = self.lock().response_senders.remove(key);
        if let Some(sender) = waiting {
            let _ = sender.send(response.clone());
        }
    }
}
