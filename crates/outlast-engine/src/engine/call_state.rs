//! A call that runs in this process: what the engine knows of it beyond the store.

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

/// One attempt at one call, in this process.
#[derive(Debug)]
pub(crate) struct CallState {
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) owner: Owner,
    pub(crate) origin: Arc<Origin>,
    /// What travels with the call; nothing after a restart.
    pub(crate) local_data: Option<LocalData>,
    pub(crate) cancellation: Cancellation,
    /// Rung when a promotion has been decided.
    pub(crate) decided: Notify,
    fields: Mutex<CallFields>,
}

#[derive(Debug)]
pub(crate) struct CallFields {
    pub(crate) stage: CallStage,
    /// The last status text, not yet stored.
    pub(crate) pending_status: Option<Arc<str>>,
    /// The last text that the work gave, stored or not.
    pub(crate) last_status: Option<Arc<str>>,
    /// The status text after the end, in place of the one that the outcome brings.
    pub(crate) end_message: Option<Arc<str>>,
    /// Answers the runner has used, not yet stored as confirmed.
    pub(crate) pending_confirmations: Vec<InputKey>,
    /// Whether the store may have it as a task although it is none.
    pub(crate) insert_unresolved: bool,
    /// Whether the status loop knows that there is something to store, or stores it now.
    pub(crate) is_queued: bool,
    pub(crate) progress: Option<Progress>,
    /// Numbers the questions of this attempt.
    pub(crate) input_requests: u32,
    /// Whether the work is for the next life of the engine.
    pub(crate) interrupted: bool,
    response_senders: BTreeMap<InputKey, oneshot::Sender<InputResponse>>,
}

/// How far a call has come on its way to being a task.
#[derive(Debug)]
pub(crate) enum CallStage {
    /// Nobody holds a handle; the state lives here only.
    Plain(Arc<Task>, Option<oneshot::Sender<Outcome>>),
    /// The store has been asked to keep it. If it ends meanwhile, the outcome waits here.
    Promoting(Arc<Task>, Option<oneshot::Sender<Outcome>>, Option<Outcome>),
    /// The store has been asked to keep it, and its work waits for that.
    Storing,
    /// It is a task; this is the newest revision seen here.
    Stored(Committed<Task>),
    /// It has ended.
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

    /// Takes note that the store has the task. False if it was stopped before it could begin.
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

    /// Ends the call here: its work is stopped, and whatever it waits for does not come.
    pub(crate) fn abort(&self) {
        let (before, waiting) = {
            let mut fields = self.lock();
            let before = std::mem::replace(&mut fields.stage, CallStage::Ended);
            fields.interrupted = !matches!(before, CallStage::Plain(..) | CallStage::Ended);
            (before, std::mem::take(&mut fields.response_senders))
        };
        drop(before);
        self.cancellation.abort();
        // Every question goes unanswered.
        drop(waiting);
    }

    /// Takes note of a newer revision.
    pub(crate) fn update_newest(&self, task: &Committed<Task>) {
        let mut fields = self.lock();
        if let CallStage::Stored(known) = &fields.stage
            && known.revision < task.revision
            && task.attempt == self.attempt
        {
            fields.stage = CallStage::Stored(task.clone());
        }
    }

    /// The newest revision seen here, if the call is a task.
    pub(crate) fn newest(&self) -> Option<Committed<Task>> {
        match &self.lock().stage {
            CallStage::Stored(task) => Some(task.clone()),
            CallStage::Plain(..)
            | CallStage::Promoting(..)
            | CallStage::Storing
            | CallStage::Ended => None,
        }
    }

    /// A key that no question of this task has had.
    pub(crate) fn fresh_key(&self) -> InputKey {
        let mut fields = self.lock();
        fields.input_requests += 1;
        InputKey::new(format!("ask-{}-{}", self.attempt.0, fields.input_requests))
    }

    /// Where the answer to `key` will arrive.
    pub(crate) fn expect_response(&self, key: InputKey) -> oneshot::Receiver<InputResponse> {
        let (sender, received) = oneshot::channel();
        self.lock().response_senders.insert(key, sender);
        received
    }

    /// Whether somebody still waits for the answer to `key`.
    pub(crate) fn expects(&self, key: &InputKey) -> bool {
        self.lock().response_senders.contains_key(key)
    }

    pub(crate) fn forget_response(&self, key: &InputKey) {
        self.lock().response_senders.remove(key);
    }

    pub(crate) fn deliver(&self, key: &InputKey, answer: &InputResponse) {
        let waiting = self.lock().response_senders.remove(key);
        if let Some(sender) = waiting {
            let _ = sender.send(answer.clone());
        }
    }
}
