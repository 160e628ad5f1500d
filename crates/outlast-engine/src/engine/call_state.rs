//! A call that runs in this process: what the engine knows of it beyond the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use super::cancellation::Stop;
use super::{Parts, Progress};
use crate::input::Answer;
use crate::id::{AskKey, Attempt, TaskId};
use crate::origin::Origin;
use crate::outcome::Outcome;
use crate::owner::Owner;
use crate::runtime::{Mutex, MutexGuard};
use crate::store::Committed;
use crate::task::Task;

/// One attempt at one call, in this process.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) owner: Owner,
    pub(crate) origin: Arc<Origin>,
    /// What travels with the call; nothing after a restart.
    pub(crate) parts: Option<Parts>,
    pub(crate) stop: Stop,
    /// Rung when a promotion has been decided.
    pub(crate) decided: Notify,
    local: Mutex<Local>,
}

#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) stage: Stage,
    /// The last status text, not yet stored.
    pub(crate) status: Option<Arc<str>>,
    /// The last text that the work gave, stored or not.
    pub(crate) said: Option<Arc<str>>,
    /// The status text after the end, in place of the one that the outcome brings.
    pub(crate) end_message: Option<Arc<str>>,
    /// Answers the runner has used, not yet stored as confirmed.
    pub(crate) confirmed: Vec<AskKey>,
    /// Whether the store may have it as a task although it is none.
    pub(crate) unsure: bool,
    /// Whether the status loop knows that there is something to store, or stores it now.
    pub(crate) queued: bool,
    pub(crate) progress: Option<Progress>,
    /// Numbers the questions of this attempt.
    pub(crate) asked: u32,
    /// Whether the work is for the next life of the engine.
    pub(crate) left: bool,
    waiting: BTreeMap<AskKey, oneshot::Sender<Answer>>,
}

/// How far a call has come on its way to being a task.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Nobody holds a handle; the state lives here only.
    Plain(Arc<Task>, Option<oneshot::Sender<Outcome>>),
    /// The store has been asked to keep it. If it ends meanwhile, the outcome waits here.
    Promoting(Arc<Task>, Option<oneshot::Sender<Outcome>>, Option<Outcome>),
    /// The store has been asked to keep it, and its work waits for that.
    Storing,
    /// It is a task; this is the newest revision seen here.
    Stored(Committed<Task>),
    /// It has ended.
    Over,
}

impl Cell {
    pub(crate) fn new(task: &Task, stage: Stage, parts: Option<Parts>) -> Self {
        Self {
            id: task.id,
            attempt: task.attempt,
            owner: task.owner.clone(),
            origin: task.origin.clone(),
            parts,
            stop: Stop::default(),
            decided: Notify::new(),
            local: Mutex::new(Local {
                stage,
                status: None,
                said: None,
                end_message: None,
                confirmed: Vec::new(),
                unsure: false,
                queued: false,
                progress: None,
                asked: 0,
                left: false,
                waiting: BTreeMap::new(),
            }),
        }
    }

    pub(crate) fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock()
    }

    /// Takes note that the store has the task. False if it was stopped before it could begin.
    pub(crate) fn is_stored(&self, task: Committed<Task>) -> bool {
        let mut local = self.local();
        let waits = matches!(local.stage, Stage::Storing);
        if waits {
            local.stage = Stage::Stored(task);
        }
        waits
    }

    /// Whether the call is or was a task.
    pub(crate) fn was_stored(&self) -> bool {
        matches!(self.local().stage, Stage::Stored(_) | Stage::Over)
    }

    /// Ends the call here: its work is stopped, and whatever it waits for does not come.
    pub(crate) fn call_off(&self) {
        let (before, waiting) = {
            let mut local = self.local();
            let before = std::mem::replace(&mut local.stage, Stage::Over);
            local.left = !matches!(before, Stage::Plain(..) | Stage::Over);
            (before, std::mem::take(&mut local.waiting))
        };
        drop(before);
        self.stop.order();
        // Every question goes unanswered.
        drop(waiting);
    }

    /// Takes note of a newer revision.
    pub(crate) fn saw(&self, task: &Committed<Task>) {
        let mut local = self.local();
        if let Stage::Stored(known) = &local.stage
            && known.revision < task.revision
            && task.attempt == self.attempt
        {
            local.stage = Stage::Stored(task.clone());
        }
    }

    /// The newest revision seen here, if the call is a task.
    pub(crate) fn known(&self) -> Option<Committed<Task>> {
        match &self.local().stage {
            Stage::Stored(task) => Some(task.clone()),
            Stage::Plain(..) | Stage::Promoting(..) | Stage::Storing | Stage::Over => None,
        }
    }

    /// A key that no question of this task has had.
    pub(crate) fn fresh_key(&self) -> AskKey {
        let mut local = self.local();
        local.asked += 1;
        AskKey::new(format!("ask-{}-{}", self.attempt.0, local.asked))
    }

    /// Where the answer to `key` will arrive.
    pub(crate) fn expect_answer(&self, key: AskKey) -> oneshot::Receiver<Answer> {
        let (tell, told) = oneshot::channel();
        self.local().waiting.insert(key, tell);
        told
    }

    /// Whether somebody still waits for the answer to `key`.
    pub(crate) fn expects(&self, key: &AskKey) -> bool {
        self.local().waiting.contains_key(key)
    }

    pub(crate) fn forget_answer(&self, key: &AskKey) {
        self.local().waiting.remove(key);
    }

    pub(crate) fn deliver(&self, key: &AskKey, answer: &Answer) {
        let waiting = self.local().waiting.remove(key);
        if let Some(tell) = waiting {
            let _ = tell.send(answer.clone());
        }
    }
}
