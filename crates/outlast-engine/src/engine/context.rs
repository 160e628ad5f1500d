//! What a running call can do: say where it stands, ask its caller, hear that it should stop.

use std::sync::Arc;

use outlast_wire::log::Log;
use tokio::sync::oneshot;

use super::call_state::{Cell, Stage};
use super::run::Pause;
use super::{AskError, EngineError, Event, Inner, Phase, Progress};
use crate::input::{Answer, Question, Timing};
use crate::id::{AskKey, Attempt, TaskId};
use crate::owner::Owner;
use crate::runtime::{can_spawn, spawn, to_the_end};
use crate::task::Handle;
use crate::transition::Command;

/// A running call's way to the world. Cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    inner: Arc<Inner>,
    cell: Arc<Cell>,
}

/// An answer that is kept until it is confirmed.
pub struct Answered {
    /// The question.
    pub key: AskKey,
    /// What the caller said.
    pub answer: Answer,
    cx: CallContext,
}

impl CallContext {
    pub(crate) fn new(inner: Arc<Inner>, cell: Arc<Cell>) -> Self {
        Self { inner, cell }
    }

    /// The call's id: that of its task, if it is one or becomes one.
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    /// The tool that is called, if it is a tool.
    pub fn tool(&self) -> Option<Arc<str>> {
        self.cell.origin.tool.clone()
    }

    /// Which start of the call this is.
    pub fn attempt(&self) -> Attempt {
        self.cell.attempt
    }

    /// What travels with the call, if it is a `T`. Gone after a restart.
    pub fn parts<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.cell.parts.clone()?.downcast().ok()
    }

    /// Whose call it is.
    pub fn owner(&self) -> &Owner {
        &self.cell.owner
    }

    /// Whether somebody may hold a handle to it, or soon will.
    pub fn is_task(&self) -> bool {
        !matches!(self.cell.local().stage, Stage::Plain(..))
    }

    /// Says where the work stands. Returns at once; of texts that follow each other quickly, the last
    /// is stored.
    pub fn status(&self, message: &str) {
        let message = self.cut(message);
        self.remark(|local| {
            local.said = Some(message.clone());
            local.status = Some(message);
        });
    }

    /// Says as a status text how far the work has come, for a caller that hears of no progress (BR-PG-2). A text of
    /// [`status`](Self::status) stays, followed by the numbers.
    pub fn progress_as_status(&self, progress: &Progress) {
        self.remark(|local| {
            let text = progress.as_status(local.said.as_deref());
            local.status = Some(self.cut(&text));
        });
    }

    /// Sets the status text that the task has after its end, in place of the one that its outcome brings.
    pub fn end_message(&self, message: &str) {
        let message = self.cut(message);
        self.cell.local().end_message = Some(message);
    }

    fn cut(&self, message: &str) -> Arc<str> {
        self.inner.policy.sizes.cut_status(message).into()
    }

    /// Says how far the work has come. Not stored; a value that does not grow is dropped (V1-PRG-3).
    pub fn progress(&self, progress: Progress) {
        {
            let mut local = self.cell.local();
            let grows = local
                .progress
                .as_ref()
                .is_none_or(|last| progress.done > last.done);
            if !grows || matches!(local.stage, Stage::Over) {
                return;
            }
            local.progress = Some(progress.clone());
        }
        self.inner
            .topics
            .publish(self.cell.id, || Event::Progress(progress.clone()));
    }

    /// Says something to whoever watches. Not stored; a watcher that does not keep up misses some. A message that
    /// is too large is replaced by a word about its size.
    pub fn log(&self, log: Log) {
        if matches!(self.cell.local().stage, Stage::Over) {
            return;
        }
        let log = self.inner.policy.sizes.admit_log(log);
        self.inner
            .topics
            .publish(self.cell.id, || Event::Log(log.clone()));
    }

    /// Says that the work runs as a task somewhere else, so that the call may as well be one now. Not stored.
    pub fn runs_as_task(&self) {
        let topics = &self.inner.topics;
        topics.publish(self.cell.id, || Event::RunsAsTask);
    }

    /// Asks the caller and waits for the answer. Dropping the future takes the question back.
    pub async fn ask(&self, question: Question) -> Result<Answer, AskError> {
        let answered = self.put(self.cell.fresh_key(), question).await?;
        Ok(answered.confirm_soon())
    }

    /// Asks before any work is done: the caller may as well be told to repeat its call with the answer.
    pub async fn ask_first(&self, question: Question) -> Result<Answer, AskError> {
        self.ask(Question {
            timing: Timing::BeforeWork,
            ..question
        })
        .await
    }

    /// Asks under a key of the runner's own and keeps the answer until the runner confirms that it has
    /// passed it on.
    pub async fn put(&self, key: AskKey, question: Question) -> Result<Answered, AskError> {
        if !self.cell.origin.accepts.contains(question.kind) {
            return Err(AskError::Unsupported(question.kind.word()));
        }
        let sizes = &self.inner.policy.sizes;
        sizes.check("the question's key", key.as_str().len(), sizes.name, "name")?;
        sizes.check("the question", question.size(), sizes.payload, "payload")?;
        let limit = sizes.questions;
        let told = self.cell.expect_answer(key.clone());
        let mut asked = Asked {
            cx: self.clone(),
            key: key.clone(),
            withdraw: true,
        };
        let attempt = self.cell.attempt;
        let command = Command::Ask {
            attempt,
            key: key.clone(),
            question,
            limit,
        };
        if let Err(refused) = self.clone().put_to_the_end(key, command).await {
            asked.withdraw = refused.is_passing();
            return Err(refused.into());
        }
        asked.answer(told).await
    }

    /// Waits for the answer to a question that an earlier attempt asked and that is still open or
    /// answered but not confirmed.
    pub async fn answer_to(&self, key: AskKey) -> Result<Answered, AskError> {
        let told = self.cell.expect_answer(key.clone());
        let asked = Asked {
            cx: self.clone(),
            key: key.clone(),
            withdraw: true,
        };
        let (answered, open) = self.cell.known().map_or((None, false), |task| {
            let open = task
                .outstanding()
                .is_some_and(|all| all.get(&key).is_some());
            (task.asked.answers.get(&key).cloned(), open)
        });
        match answered {
            Some(answer) => Ok(asked.done(answer)),
            None if open => asked.answer(told).await,
            None => {
                asked.drop_quietly();
                Err(AskError::Withdrawn)
            }
        }
    }

    /// Questions that an earlier attempt left open or answered, to go on with after a re-attachment.
    pub fn left_open(&self) -> Vec<AskKey> {
        let Some(task) = self.cell.known() else {
            return Vec::new();
        };
        let open = task
            .outstanding()
            .into_iter()
            .flat_map(|all| all.iter().map(|(key, _)| key));
        open.chain(task.asked.answers.keys()).cloned().collect()
    }

    /// Takes a question back.
    pub async fn withdraw(&self, key: AskKey) -> Result<(), EngineError> {
        self.cell.forget_answer(&key);
        self.command(Command::Withdraw {
            attempt: self.cell.attempt,
            key,
        })
        .await
    }

    /// Stores what the runner needs to find the work again after a restart.
    pub async fn attach(&self, handle: Handle) -> Result<(), EngineError> {
        let sizes = &self.inner.policy.sizes;
        sizes.check("the handle", handle.0.len(), sizes.handle, "handle")?;
        self.command(Command::Attach {
            attempt: self.cell.attempt,
            handle,
        })
        .await
    }

    /// Whether the caller wants the work to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cell.stop.is_asked()
    }

    /// Whether the engine closes and leaves the work to its next life: what goes on elsewhere is not to be stopped. A call that
    /// is no task has no next life.
    pub fn is_left(&self) -> bool {
        self.inner.phase() == Phase::Closed && self.cell.local().left
    }

    /// Resolves when the caller wants the work to stop.
    pub async fn cancelled(&self) {
        self.cell.stop.asked().await;
    }

    /// Puts a question. Whoever asked may give it up before it is stored: then it is taken back here.
    async fn put_to_the_end(self, key: AskKey, command: Command) -> Result<(), EngineError> {
        to_the_end(async move {
            let put = self.inner.command(&self.cell, command).await;
            let may_be_open = put.as_ref().err().is_none_or(EngineError::is_passing);
            if may_be_open && !self.cell.expects(&key) {
                self.take_back(key).await;
            }
            put
        })
        .await
    }

    /// Takes back a question that nobody waits for, however long the store takes.
    async fn take_back(&self, key: AskKey) {
        let mut pause = Pause::default();
        // Answered or ended meanwhile: then there is nothing to take back.
        while let Err(error) = self.withdraw(key.clone()).await {
            if !error.is_passing() || self.inner.phase() == Phase::Closed {
                return;
            }
            pause.rest().await;
        }
    }

    async fn command(&self, command: Command) -> Result<(), EngineError> {
        let (inner, cell) = (self.inner.clone(), self.cell.clone());
        to_the_end(async move { inner.command(&cell, command).await }).await
    }

    /// Notes something that is stored soon, together with whatever else is to be stored.
    fn remark(&self, note: impl FnOnce(&mut super::call_state::Local)) {
        let queued = {
            let mut local = self.cell.local();
            if matches!(local.stage, Stage::Over) {
                return;
            }
            note(&mut local);
            std::mem::replace(&mut local.queued, true)
        };
        if !queued {
            self.inner.remarks.expect(self.cell.id);
        }
    }
}

impl Answered {
    /// Says that the answer need not be kept, which is stored with whatever is to be stored next.
    pub fn confirm_soon(self) -> Answer {
        let Self { key, answer, cx } = self;
        cx.remark(|local| local.confirmed.push(key));
        answer
    }

    /// Says that the answer has been passed on and need not be kept.
    pub async fn confirm(self) -> Result<(), EngineError> {
        let attempt = self.cx.cell.attempt;
        self.cx
            .command(Command::Confirm {
                attempt,
                key: self.key,
            })
            .await
    }
}

/// A question on its way. Taken back if nobody waits for it any more.
struct Asked {
    cx: CallContext,
    key: AskKey,
    withdraw: bool,
}

impl Asked {
    async fn answer(self, told: oneshot::Receiver<Answer>) -> Result<Answered, AskError> {
        match told.await {
            Ok(answer) => Ok(self.done(answer)),
            Err(_) => {
                self.drop_quietly();
                Err(AskError::Withdrawn)
            }
        }
    }

    fn done(mut self, answer: Answer) -> Answered {
        self.withdraw = false;
        Answered {
            key: self.key.clone(),
            answer,
            cx: self.cx.clone(),
        }
    }

    fn drop_quietly(mut self) {
        self.withdraw = false;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.cx.cell.forget_answer(&self.key);
        let over = matches!(self.cx.cell.local().stage, Stage::Over);
        if self.withdraw && !over && can_spawn() {
            let (cx, key) = (self.cx.clone(), self.key.clone());
            spawn(async move { cx.take_back(key).await });
        }
    }
}
