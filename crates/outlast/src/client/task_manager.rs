//! A manager of tasks that the host program executes itself, without a connection (seed 000).
//!
//! The manager keeps the laws of tasks: five statuses, exactly one end, a TTL for every task. The
//! program reports what its work does. Tasks are kept in memory and have no executor: a task that
//! is never ended is removed when its TTL ends.
//!
//! ```
//! use outlast::client::{NewManagedTask, TaskManager, TaskManagerOptions};
//! use outlast::wire::Raw;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = TaskManager::open(TaskManagerOptions::default()).await?;
//! let task = manager.create(NewManagedTask::new("sampling/createMessage")).await?;
//! manager.set_result(&task.id, Raw::parse(r#"{"role":"assistant"}"#.into())?).await?;
//! assert_eq!(manager.result(&task.id).await?.as_str(), r#"{"role":"assistant"}"#);
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(run()).unwrap();
//! ```

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::engine::{EngineError, Event, FnRunner, NewCall, Watch, Work};
use outlast_engine::store::Snapshot;
use outlast_engine::task::TtlPolicy;
use outlast_engine::transition::Refused;
use outlast_engine::{
    Committed, Ending, Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest,
    MemoryStore, Origin, Outcome, Owner, Policy, Quota, Task, TaskId,
};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{PeerTask, Raw, Status, codes};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::handler::{TASK_CANCELLED, TASK_EXPIRED};
use super::hosted_tasks::{HostedTasks, HostedTasksPage};
use super::receiver::{ReceiverTtl, WaitingStatus};
use crate::engine_errors::to_wire;

/// Manages tasks that the program executes itself. Cheap to clone; all clones share the tasks. The
/// tasks end with the last clone.
///
/// ```
/// use outlast::client::{NewManagedTask, TaskManager, TaskManagerOptions};
/// use outlast::wire::{Raw, Status};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let tasks = TaskManager::open(TaskManagerOptions::default()).await?;
/// let failed = |error: outlast::wire::ErrorObject| format!("{error:?}");
/// let task = tasks.create(NewManagedTask::new("sampling/createMessage")).await.map_err(failed)?;
/// assert_eq!(task.status, Status::Working);
/// let result = Raw::parse(r#"{"role":"assistant"}"#.into())?;
/// let task = tasks.set_result(&task.id, result).await.map_err(failed)?;
/// assert_eq!(task.status, Status::Completed);
/// # Ok(()) }
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # runtime.block_on(run()).unwrap();
/// ```
#[derive(Clone)]
pub struct TaskManager(Arc<Shared>);

/// The settings of a [`TaskManager`].
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskManagerOptions {
    /// The TTL of a task that requests none, read when the task is created.
    pub ttl: ReceiverTtl,
    /// The longest TTL that is granted.
    pub max_ttl: Duration,
    /// The poll interval that is reported.
    pub poll_interval: Duration,
    /// How many tasks may be open at the same time.
    pub max_open_tasks: u32,
    /// Receives every change of a task.
    pub sink: Option<StatusSink>,
}

/// Receives a task after each change. Its failures are logged and never change the task (S0-69).
pub type StatusSink =
    Arc<dyn Fn(&PeerTask) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send + Sync>;

/// A task to create.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewManagedTask {
    /// The method of the request behind the task.
    pub method: Arc<str>,
    /// The params of that request.
    pub params: Option<Raw>,
    /// The requested TTL.
    pub ttl: Option<Duration>,
    /// The first status message.
    pub message: Option<Arc<str>>,
}

/// Resolves when the work of a task must stop (S0-65).
#[derive(Clone, Debug)]
pub struct AbortSignal(watch::Receiver<Option<&'static str>>);

struct Shared {
    engine: Engine,
    tasks: HostedTasks,
    options: TaskManagerOptions,
    signals: Signals,
}

type Signals = Mutex<HashMap<TaskId, watch::Sender<Option<&'static str>>>>;

/// TTL one minute, at most one hour; poll interval two seconds; 32 open tasks; no sink.
impl Default for TaskManagerOptions {
    fn default() -> Self {
        Self {
            ttl: ReceiverTtl::Fixed(Duration::from_secs(60)),
            max_ttl: Duration::from_secs(3_600),
            poll_interval: Duration::from_secs(2),
            max_open_tasks: 32,
            sink: None,
        }
    }
}

impl TaskManagerOptions {
    /// Sets the TTL of a task that requests none.
    pub fn with_ttl(mut self, ttl: ReceiverTtl) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the longest TTL that is granted.
    pub fn with_max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets the poll interval that is reported.
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets how many tasks may be open at the same time.
    pub fn with_max_open_tasks(mut self, tasks: u32) -> Self {
        self.max_open_tasks = tasks;
        self
    }

    /// Sets the receiver of changes.
    pub fn with_sink(
        mut self,
        sink: impl Fn(&PeerTask) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }
}

impl NewManagedTask {
    /// A task for a request with this method.
    pub fn new(method: impl Into<Arc<str>>) -> Self {
        Self {
            method: method.into(),
            params: None,
            ttl: None,
            message: None,
        }
    }

    /// Sets the params of the request.
    pub fn with_params(mut self, params: Raw) -> Self {
        self.params = Some(params);
        self
    }

    /// Requests a TTL.
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl TaskManager {
    /// Opens a manager without tasks.
    pub async fn open(options: TaskManagerOptions) -> Result<Self, EngineError> {
        let policy = Policy::default()
            .with_max_ttl(options.max_ttl)
            .with_ttl_policy(TtlPolicy::Strict)
            .with_poll_interval(options.poll_interval)
            .with_quota(Quota::default().with_owner_open(options.max_open_tasks));
        // Detached tasks are never run; the engine only needs the name.
        let unused = FnRunner::new(|_, _| async {
            Outcome::error(ErrorCode(codes::INTERNAL_ERROR), "the task has no runner")
        });
        let (engine, _) = Engine::builder(Arc::new(MemoryStore::new()))
            .policy(policy)
            .runner(RUNNER, Arc::new(unused))
            .open()
            .await?;
        let tasks = HostedTasks::new(engine.clone(), Owner::session(OWNER));
        Ok(Self(Arc::new(Shared {
            engine,
            tasks,
            options,
            signals: Mutex::default(),
        })))
    }

    /// Creates a task with the status `working`. The sink is not notified (S1-33).
    pub async fn create(&self, new: NewManagedTask) -> Result<PeerTask, ErrorObject> {
        let mut origin = Origin::new(new.method, RUNNER, InputKinds::all());
        origin.params = new.params;
        let mut call = NewCall::new(self.0.tasks.owner().clone(), origin);
        call.work = Work::Detached;
        call.message = new.message;
        let default = || Duration::from_millis(self.0.options.ttl.millis());
        call.ttl = Some(new.ttl.unwrap_or_else(default));
        let shared = Arc::downgrade(&self.0);
        let follower = Box::new(
            move |watch: Watch| -> outlast_engine::engine::FollowerFuture {
                // Registered before the creator has its response.
                if let Some(shared) = shared.upgrade() {
                    let signal = watch::channel(None).0;
                    shared.signals.lock().insert(watch.first.id(), signal);
                }
                Box::pin(follow(shared, watch))
            },
        );
        let created = self.0.engine.create_followed(call, follower).await;
        let created = created.map_err(|error| to_wire(&error))?;
        Ok(self.0.tasks.describe(&created.task().clone().into()))
    }

    /// Sets the status and its message. An unknown task is ignored (S0-49); a task that has ended
    /// is an error (S0-50). The ends are [`set_result`](Self::set_result),
    /// [`set_error`](Self::set_error) and [`cancel`](Self::cancel).
    pub async fn update_status(
        &self,
        task: &str,
        status: WaitingStatus,
        message: Option<&str>,
    ) -> Result<(), ErrorObject> {
        match self.try_update(task, status, message).await {
            Ok(()) | Err(EngineError::NotFound | EngineError::Expired) => Ok(()),
            Err(error) => Err(change_to_wire(&error)),
        }
    }

    async fn try_update(
        &self,
        task: &str,
        status: WaitingStatus,
        message: Option<&str>,
    ) -> Result<(), EngineError> {
        let task = self.load(task).await?;
        if let Some(ending) = task.state.ending() {
            return Err(Refused::AlreadyEnded(ending).into());
        }
        let work = self.0.engine.detached(task.id, task.attempt);
        // Set the message first, so that a reader of the new status also gets its message.
        if let Some(message) = message {
            work.status(message).await?;
        }
        let open: Vec<InputKey> = task
            .outstanding()
            .into_iter()
            .flat_map(|all| all.iter().map(|(key, _)| key.clone()))
            .collect();
        match status {
            WaitingStatus::InputRequired if open.is_empty() => {
                let key = InputKey::new(format!("user-{}", task.input.keys.len()));
                // This input request never gets a response. It only sets the status.
                let request = InputRequest::new(InputKind::ElicitForm, None);
                work.request_input(key, request).await
            }
            WaitingStatus::InputRequired => Ok(()),
            WaitingStatus::Working => {
                for key in open {
                    work.withdraw_input(key).await?;
                }
                Ok(())
            }
        }
    }

    /// Ends a task as completed. Only the first end of a task succeeds (S0-52).
    pub async fn set_result(&self, task: &str, result: Raw) -> Result<PeerTask, ErrorObject> {
        self.end(task, Outcome::Result(result)).await
    }

    /// Ends a task as failed. Only the first end of a task succeeds (S0-53).
    pub async fn set_error(
        &self,
        task: &str,
        error: &ErrorObject,
    ) -> Result<PeerTask, ErrorObject> {
        let message = Some(error.message.as_str().into());
        let outcome = Outcome::Error(error.to_raw(), ErrorCode(error.code), message);
        self.end(task, outcome).await
    }

    async fn end(&self, task: &str, outcome: Outcome) -> Result<PeerTask, ErrorObject> {
        let ended = async {
            let task = self.load(task).await?;
            let work = self.0.engine.detached(task.id, task.attempt);
            work.end(outcome).await
        };
        let ended = ended.await.map_err(|error| change_to_wire(&error))?;
        Ok(self.0.tasks.describe(&ended.into()))
    }

    /// The task; the error of an unknown task is -32602 (S0-54).
    pub async fn task(&self, task: &str) -> Result<PeerTask, ErrorObject> {
        self.0.tasks.task(task).await
    }

    /// Waits for the end of a task and returns its result or its error (S0-56, S0-57).
    pub async fn result(&self, task: &str) -> Result<Raw, ErrorObject> {
        self.0.tasks.result(task).await
    }

    /// A page of the tasks, newest first, after `cursor`.
    pub async fn list(&self, cursor: Option<&str>) -> Result<HostedTasksPage, ErrorObject> {
        self.0.tasks.list(cursor).await
    }

    /// Cancels a task, and fires its abort signal. A task that has ended is an error (S0-60).
    pub async fn cancel(&self, task: &str) -> Result<PeerTask, ErrorObject> {
        self.0.tasks.cancel(task).await
    }

    /// The abort signal of an open task.
    pub fn abort_signal(&self, task: &str) -> Option<AbortSignal> {
        let signals = self.0.signals.lock();
        let signal = signals.get(&task.parse().ok()?)?;
        Some(AbortSignal(signal.subscribe()))
    }

    /// Removes a task. If it is open, it is cancelled first, so that its waiters get a response and
    /// its work stops (S0-66).
    pub async fn cleanup(&self, task: &str) -> Result<(), ErrorObject> {
        self.0.tasks.remove(task).await
    }

    async fn load(&self, task: &str) -> Result<Committed<Task>, EngineError> {
        let id = task.parse().map_err(|_| EngineError::NotFound)?;
        self.0.engine.load(&self.0.tasks.scope(), id).await
    }
}

impl AbortSignal {
    /// The reason of the abort: [`TASK_CANCELLED`](super::TASK_CANCELLED) or
    /// [`TASK_EXPIRED`](super::TASK_EXPIRED); `None` if the task was not aborted.
    pub fn reason(&self) -> Option<&'static str> {
        *self.0.borrow()
    }

    /// Waits for the abort and returns its reason. Never resolves if the task ends otherwise.
    pub async fn aborted(&mut self) -> &'static str {
        // It fails if the task has ended otherwise.
        let _ = self.0.wait_for(Option::is_some).await;
        match self.reason() {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

/// The error of a refused change. It names the status of a task that has ended (S0-50).
fn change_to_wire(error: &EngineError) -> ErrorObject {
    let EngineError::Refused(Refused::AlreadyEnded(ending)) = error else {
        return to_wire(error);
    };
    let status = match ending {
        Ending::Result => Status::Completed,
        Ending::ToolError | Ending::Error(_) => Status::Failed,
        Ending::Cancelled => Status::Cancelled,
    };
    let message = format!("Cannot transition from terminal status '{status}'");
    ErrorObject::new(codes::INVALID_PARAMS, message)
}

/// Notifies the sink of every change, and fires the abort signal.
async fn follow(shared: Weak<Shared>, mut watch: Watch) {
    let id = watch.first.id();
    let mut last = watch.first.clone();
    while let Some(event) = watch.next().await {
        let (Event::Stored(task), Some(shared)) = (event, shared.upgrade()) else {
            continue;
        };
        last = Snapshot::from(task);
        if let Some(sink) = &shared.options.sink {
            let task = shared.tasks.describe(&last);
            match catch_unwind(AssertUnwindSafe(|| sink(&task))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "could not report the status of a task"),
                Err(_) => tracing::warn!("the receiver of task statuses panicked"),
            }
        }
    }
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let signal = shared.signals.lock().remove(&id);
    let reason = match last.ending() {
        Some(Ending::Cancelled) => Some(TASK_CANCELLED),
        Some(_) => None,
        None => Some(TASK_EXPIRED),
    };
    if let (Some(signal), Some(reason)) = (signal, reason) {
        signal.send_replace(Some(reason));
    }
}

/// The name of the runner in the engine.
const RUNNER: &str = "manager";

/// The owner of all tasks of a manager.
const OWNER: &str = "manager";
