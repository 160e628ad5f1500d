//! What a caller waits for: a plain call or a task. Also the index of pending calls by their
//! arguments.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;

use outlast_engine::engine::{EndedTask, EngineError, Event, Progress, RunningCall, Watch};
use outlast_engine::store::Snapshot;
use outlast_engine::{
    Engine, InputKey, InputResponse, Origin, Outcome, Outstanding, Owner, RetryClass, Scope, TaskId,
};
use outlast_wire::log::Log;
use outlast_wire::object;
use parking_lot::{Mutex, MutexGuard};

/// What a caller waits for.
pub(in crate::server) enum CallSource {
    /// A plain call. Dropping it stops the work.
    Call(Box<RunningCall>),
    /// A task. Dropping it does not affect the task.
    Task(TaskSource),
}

/// A task that a caller waits for.
pub(in crate::server) struct TaskSource {
    task: TaskId,
    watch: Watch,
    /// The task as it was at first, until it is reported.
    first: Option<Snapshot>,
    watched: bool,
    outcome: Pin<Box<dyn Future<Output = Result<EndedTask, EngineError>> + Send>>,
}

/// An event of a call or a task.
pub(super) enum SourceEvent {
    Progress(Progress),
    Log(Log),
    /// The upstream runs the call as a task.
    RunsAsTask,
    /// The state changed; these input requests are open now.
    Changed(Option<Outstanding>),
    /// The call has ended.
    Ended(Outcome),
    /// The task has ended or was removed.
    Settled(TaskId, Result<EndedTask, EngineError>),
}

impl CallSource {
    /// Waits for a plain call.
    pub(in crate::server) fn call(running: RunningCall) -> Self {
        Self::Call(Box::new(running))
    }

    /// Waits for a task.
    pub(in crate::server) async fn task(
        engine: &Engine,
        scope: &Scope,
        task: TaskId,
    ) -> Result<Self, EngineError> {
        let watch = engine.watch(scope, task).await?;
        let (engine, scope) = (engine.clone(), scope.clone());
        Ok(Self::Task(TaskSource {
            task,
            first: Some(watch.first.clone()),
            watch,
            watched: true,
            outcome: Box::pin(async move { engine.wait(&scope, task).await }),
        }))
    }

    /// The id of the task, or the id that the call would have as a task.
    pub(super) fn id(&self) -> TaskId {
        match self {
            Self::Call(running) => running.id(),
            Self::Task(source) => source.task,
        }
    }

    /// The next event. Cancel-safe: dropping the future loses no event.
    pub(super) async fn next(&mut self) -> SourceEvent {
        match self {
            Self::Call(running) => loop {
                return match running.event().await {
                    Some(Event::Progress(progress)) => SourceEvent::Progress(progress),
                    Some(Event::Log(log)) => SourceEvent::Log(log),
                    Some(Event::RunsAsTask) => SourceEvent::RunsAsTask,
                    Some(Event::Plain(call)) => SourceEvent::Changed(call.outstanding().cloned()),
                    Some(Event::Stored(_)) => continue,
                    None => SourceEvent::Ended(running.outcome().await),
                };
            },
            Self::Task(source) => source.next().await,
        }
    }

    /// Responds to input requests of a plain call. A response to a closed request is ignored.
    pub(super) async fn respond(&mut self, answers: BTreeMap<InputKey, InputResponse>) {
        if let Self::Call(running) = self
            && !answers.is_empty()
        {
            let _ = running.provide_input(answers).await;
        }
    }

    /// The open input requests of a call.
    pub(super) fn outstanding(&self) -> Option<Outstanding> {
        match self {
            Self::Call(running) => running.state()?.outstanding().cloned(),
            Self::Task(_) => None,
        }
    }
}

impl TaskSource {
    async fn next(&mut self) -> SourceEvent {
        if let Some(Snapshot::Open(task)) = self.first.take() {
            return SourceEvent::Changed(task.outstanding().cloned());
        }
        loop {
            tokio::select! {
                biased;
                event = self.watch.next(), if self.watched => match event {
                    Some(Event::Progress(progress)) => return SourceEvent::Progress(progress),
                    Some(Event::Log(log)) => return SourceEvent::Log(log),
                    Some(Event::Stored(task)) => {
                        return SourceEvent::Changed(task.outstanding().cloned());
                    }
                    Some(Event::Plain(_) | Event::RunsAsTask) => {}
                    None => self.watched = false,
                },
                outcome = &mut self.outcome => return SourceEvent::Settled(self.task, outcome),
            }
        }
    }
}

/// Stored calls whose callers wait for them, by their arguments: a repeated call continues to wait
/// for the same task.
#[derive(Default)]
pub(in crate::server) struct PendingCalls(Mutex<HashMap<CallKey, TaskId>>);

/// What identifies a repeated call.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::server) struct CallKey {
    owner: Owner,
    runner: String,
    tool: String,
    arguments: String,
}

impl CallKey {
    /// The key of a call. Only a call that may run again is found again.
    pub(in crate::server) fn new(owner: &Owner, origin: &Origin) -> Option<Self> {
        if origin.retry != RetryClass::Rerun {
            return None;
        }
        let params = origin.params.as_ref()?;
        let arguments = object::find(params.borrow(), &["arguments"]);
        let arguments = arguments.and_then(|found| found.open::<serde_json::Value>().ok());
        Some(Self {
            owner: owner.clone(),
            runner: origin.runner.to_string(),
            tool: origin.tool.as_deref()?.to_owned(),
            // Equal arguments in another member order give the same key.
            arguments: arguments.unwrap_or_default().to_string(),
        })
    }
}

impl PendingCalls {
    pub(in crate::server) fn find(&self, key: &CallKey) -> Option<TaskId> {
        self.lock().get(key).copied()
    }

    pub(in crate::server) fn add(&self, key: CallKey, task: TaskId) {
        let mut calls = self.lock();
        if calls.len() < MAX_PENDING_CALLS {
            calls.insert(key, task);
        }
    }

    /// Removes a call that has ended, unless another call has the same key now.
    pub(in crate::server) fn remove(&self, key: &CallKey, task: TaskId) {
        let mut calls = self.lock();
        if calls.get(key) == Some(&task) {
            calls.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallKey, TaskId>> {
        self.0.lock()
    }
}

/// How many calls are indexed.
const MAX_PENDING_CALLS: usize = 10_000;
