//! The state of a call that runs in this process and is not stored.

use std::collections::BTreeMap;
use std::sync::Arc;

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
pub(crate) struct CallFields {
    pub(crate) stage: CallStage,
    /// The newest status text that is not stored yet.
    pub(crate) pending_status: Option<Arc<str>>,
    /// The newest status text of the work, stored or not.
    pub(crate) last_status: Option<Arc<str>>,
    /// The final status text, in place of the one of the outcome.
    pub(crate) end_message: Option<Arc<str>>,
    /// Input responses that the runner has used and that are not stored as confirmed yet.
    pub(crate) pending_confirmations: Vec<InputKey>,
    /// Whether the store may contain it as a task although it is not one.
    pub(crate) insert_unresolved: bool,
    /// Whether the call is queued in the status writer, or being stored by it.
    pub(crate) is_queued: bool,
    pub(crate) progress: Option<Progress>,
    /// The number of input requests of this attempt.
    pub(crate) input_requests: u32,
    /// Whether the work is left to the next start of the engine.
    pub(crate) interrupted: bool,
    response_senders: BTreeMap<InputKey, oneshot::Sender<InputResponse>>,
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
                pending_status: None,
                last_status: None,
                end_message: None,
                pending_confirmations: Vec::new(),
                insert_unresolved: false,
                is_queued: false,
                progress: None,
                input_requests: 0,
                interrupted: false,
                response_senders: BTreeMap::new(),
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, CallFields> {
        self.fields.lock()
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
