//! Several named connections, and the tasks that are followed on them (seed 004).
//!
//! A connection is found by the name of its server and by its source, for example the file in which
//! it is configured: two files may use the same name. A task is found by server, source and task
//! id, because the ids of two servers may be equal (S4-35). Every task that was created here is
//! followed until its result was fetched or its cancellation is confirmed. An execution that was
//! given to [`Hub::follow`] is followed until it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::envelope::Id;
use outlast_wire::{PeerTask, Raw, Status, Timestamp, codes, tool};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;

use super::call::{CallError, TaskPreference};
use super::client::Client;
use super::error::{Error, PeerError};
use super::execution::{Execution, ExecutionStatus, OutcomeError};

/// Several named connections. Cheap to clone; all clones share the connections.
///
/// ```no_run
/// use outlast::client::{Client, ConnectionName, Hub, HubCallOptions};
///
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let hub = Hub::new();
/// let files = ConnectionName::new("files", "~/.config/mcp.json");
/// hub.add(files.clone(), client)?;
/// let call = hub.call_tool_as_task(&files, "index", (), HubCallOptions::default()).await?;
/// if let Some(task) = call.task {
///     println!("{}", hub.get_task_result(&files, &task).await?.as_str());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    updates: broadcast::Sender<HubUpdate>,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<ConnectionName, Client>,
    followed: BTreeMap<(ConnectionName, String), Followed>,
}

struct Followed {
    execution: Arc<Execution>,
    progress_token: Option<Id>,
}

/// The name of a connection: its server, and where the connection is configured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionName {
    /// The name of the server.
    pub server: Arc<str>,
    /// Where the connection is configured, for example `global` or the path of a file.
    pub source: Arc<str>,
}

/// The options of [`Hub::call_tool_as_task`].
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct HubCallOptions {
    /// The requested TTL.
    pub ttl: Option<Duration>,
    /// The progress token. It must differ from those of other open calls of the connection. Without
    /// it the client chooses one.
    pub progress_token: Option<Id>,
    /// Receives every change of the task.
    pub on_status: Option<OnStatus>,
}

/// Receives the changes of a task.
pub type OnStatus = Arc<dyn Fn(&HubUpdate) + Send + Sync>;

/// A change of a followed task (S4-32, S4-56).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HubUpdate {
    /// The connection.
    pub connection: ConnectionName,
    /// The id of the task.
    pub task: String,
    /// Its status.
    pub status: Status,
    /// Its status message.
    pub message: Option<String>,
    /// The progress so far, if the server reports it.
    pub progress: Option<f64>,
    /// The end of the progress, if the server reports it.
    pub total: Option<f64>,
}

/// A call that was made as a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HubCall {
    /// The id of the task; `None` if the server returned a result without a task.
    pub task: Option<String>,
    /// The text that the server has for the model while the task runs (S4-50).
    pub immediate_response: Option<String>,
    /// The outcome, if the server returned it without a task (S4-49).
    pub outcome: Option<Outcome>,
}

/// A followed task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ActiveTask {
    /// The connection.
    pub connection: ConnectionName,
    /// The method of the request behind the task.
    pub method: &'static str,
    /// The tool.
    pub tool: Arc<str>,
    /// The task as the server reported it last, with its times and its TTL.
    pub task: PeerTask,
    /// The progress token that the caller gave.
    pub progress_token: Option<Id>,
}

/// A page of the tasks of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubTasksPage {
    /// The tasks.
    pub tasks: Vec<PeerTask>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Why an operation of a hub failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The hub has no such connection (S4-44).
    #[error("no connection to server {} from {}", .0.server, .0.source)]
    NotConnected(ConnectionName),
    /// The hub has a connection with this name.
    #[error("the hub already has a connection to server {} from {}", .0.server, .0.source)]
    NameInUse(ConnectionName),
    /// The call was not sent.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The call has no outcome.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
    /// The task has finished, so that it cannot be cancelled (S4-55).
    #[error("task {0} has already finished")]
    AlreadyFinished(String),
    /// The request failed.
    #[error(transparent)]
    Request(#[from] Error),
}

impl ConnectionName {
    /// The name of a connection.
    pub fn new(server: impl Into<Arc<str>>, source: impl Into<Arc<str>>) -> Self {
        Self {
            server: server.into(),
            source: source.into(),
        }
    }
}

impl HubCallOptions {
    /// Requests a TTL.
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the progress token. `0` and `""` are valid (S4-48).
    pub fn with_progress_token(mut self, token: Id) -> Self {
        self.progress_token = Some(token);
        self
    }

    /// Sets the receiver of changes.
    pub fn with_on_status(
        mut self,
        on_status: impl Fn(&HubUpdate) + Send + Sync + 'static,
    ) -> Self {
        self.on_status = Some(Arc::new(on_status));
        self
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// A hub without connections.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            updates: broadcast::channel(UPDATE_CAPACITY).0,
        }))
    }

    /// Adds a connection.
    pub fn add(&self, name: ConnectionName, client: Client) -> Result<(), HubError> {
        let mut state = self.0.state.lock();
        if state.clients.contains_key(&name) {
            return Err(HubError::NameInUse(name));
        }
        state.clients.insert(name, client);
        Ok(())
    }

    /// Removes a connection and forgets its tasks. They run on at the server.
    pub fn remove(&self, name: &ConnectionName) -> Option<Client> {
        let mut state = self.0.state.lock();
        state.followed.retain(|(of, _), _| of != name);
        state.clients.remove(name)
    }

    /// The names of the connections.
    pub fn connections(&self) -> Vec<ConnectionName> {
        self.0.state.lock().clients.keys().cloned().collect()
    }

    /// A connection.
    pub fn client(&self, name: &ConnectionName) -> Result<Client, HubError> {
        let found = self.0.state.lock().clients.get(name).cloned();
        found.ok_or_else(|| HubError::NotConnected(name.clone()))
    }

    /// The changes of all followed tasks from now on. A slow reader misses some of them.
    pub fn updates(&self) -> broadcast::Receiver<HubUpdate> {
        self.0.updates.subscribe()
    }

    /// Calls a tool as a task, and follows the task. Resolves when the task exists. The arguments
    /// are as in [`Client::call_tool`].
    pub async fn call_tool_as_task(
        &self,
        name: &ConnectionName,
        tool: &str,
        arguments: impl Serialize,
        options: HubCallOptions,
    ) -> Result<HubCall, HubError> {
        let call = self.client(name)?.call_tool(tool, arguments);
        let mut call = call.task(TaskPreference::Require);
        if let Some(ttl) = options.ttl {
            call = call.ttl(ttl);
        }
        if let Some(token) = options.progress_token.clone() {
            call = call.progress_token(token);
        }
        let execution = Arc::new(call.await?);
        // Subscribed before the task exists, so that no change is missed.
        let updates = execution.updates();
        let Some(task) = execution.task().await else {
            return Ok(HubCall {
                task: None,
                immediate_response: None,
                outcome: Some(execution.outcome().await?),
            });
        };
        let followed = Followed {
            execution: execution.clone(),
            progress_token: options.progress_token,
        };
        let key = (name.clone(), task.clone());
        self.0.state.lock().followed.insert(key.clone(), followed);
        let mut reporter = Reporter {
            hub: Arc::downgrade(&self.0),
            key,
            on_status: options.on_status,
            last: None,
        };
        let created = execution.status();
        tokio::spawn(async move {
            let mut updates = updates;
            reporter.report(&created);
            while let Some(status) = updates.next().await {
                reporter.report(&status);
            }
        });
        Ok(HubCall {
            task: Some(task),
            immediate_response: execution.status().immediate_response,
            outcome: None,
        })
    }

    /// Follows an execution on a connection: one of a call with options that
    /// [`Hub::call_tool_as_task`] does not have, or one that was [resumed](Client::resume).
    ///
    /// When it has a task, the task is one of the [active tasks](Hub::active_tasks), and its
    /// changes are [updates](Hub::updates) of the hub. It is forgotten when the execution ends.
    /// Until then the hub keeps the execution, so that dropping the returned one does not detach
    /// from the task.
    pub fn follow(&self, name: &ConnectionName, execution: Execution) -> Arc<Execution> {
        let execution = Arc::new(execution);
        let mut updates = execution.updates();
        let mut following = Following {
            hub: Arc::downgrade(&self.0),
            name: name.clone(),
            execution: Arc::downgrade(&execution),
            reporter: None,
        };
        // At once, because the execution may have a task already.
        let mut is_open = following.apply(&execution.status());
        tokio::spawn(async move {
            while is_open {
                match updates.next().await {
                    Some(status) => is_open = following.apply(&status),
                    None => {
                        following.forget();
                        return;
                    }
                }
            }
        });
        execution
    }

    /// Polls a task once.
    pub async fn get_task(&self, name: &ConnectionName, task: &str) -> Result<PeerTask, HubError> {
        Ok(self.client(name)?.get_task(task).await?)
    }

    /// Waits for the result of a task. A followed task is forgotten then (S4-28, S4-53).
    pub async fn get_task_result(
        &self,
        name: &ConnectionName,
        task: &str,
    ) -> Result<Raw, HubError> {
        let client = self.client(name)?;
        let Some(execution) = self.followed(name, task) else {
            return Ok(client.task_result(task).await?);
        };
        let outcome = execution.outcome().await;
        self.forget(name, task);
        let not_an_object = || Error::Malformed("the error of the task is not an object".into());
        match outcome? {
            Outcome::Result(result) | Outcome::ToolError(result, _) => Ok(result),
            Outcome::Error(error, ..) => {
                let read = PeerError::read(error.borrow());
                Err(read.map_or_else(not_an_object, Error::Peer).into())
            }
            Outcome::Cancelled => Err(Error::Peer(codes::task_cancelled(task).into()).into()),
        }
    }

    /// A page of the tasks of a server after `cursor` (S4-54).
    pub async fn list_tasks(
        &self,
        name: &ConnectionName,
        cursor: Option<&str>,
    ) -> Result<HubTasksPage, HubError> {
        let page = self.client(name)?.list_tasks_page(cursor).await?;
        Ok(HubTasksPage {
            tasks: page.tasks,
            next_cursor: page.next_cursor,
        })
    }

    /// Cancels a task and returns its state. A followed task is forgotten when its end is confirmed
    /// (S4-55).
    pub async fn cancel_task(
        &self,
        name: &ConnectionName,
        task: &str,
    ) -> Result<PeerTask, HubError> {
        let cancelled = match self.client(name)?.cancel_task(task).await {
            Ok(cancelled) => cancelled,
            Err(error) if error.code() == Some(codes::INVALID_PARAMS) => {
                return Err(HubError::AlreadyFinished(task.to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        if cancelled.status == Status::Cancelled {
            self.forget(name, task);
        }
        Ok(cancelled)
    }

    /// The followed tasks.
    pub fn active_tasks(&self) -> Vec<ActiveTask> {
        let state = self.0.state.lock();
        let active = state.followed.iter().filter_map(|((name, _), followed)| {
            let status = followed.execution.status();
            Some(ActiveTask {
                connection: name.clone(),
                method: tool::CALL,
                tool: status.tool,
                task: status.task?,
                progress_token: followed.progress_token.clone(),
            })
        });
        active.collect()
    }

    /// Stops to follow a task. It runs on at the server.
    pub fn forget(&self, name: &ConnectionName, task: &str) {
        let key = (name.clone(), task.to_owned());
        self.0.state.lock().followed.remove(&key);
    }

    fn followed(&self, name: &ConnectionName, task: &str) -> Option<Arc<Execution>> {
        let key = (name.clone(), task.to_owned());
        let state = self.0.state.lock();
        Some(state.followed.get(&key)?.execution.clone())
    }
}

/// One execution that was given to [`Hub::follow`].
struct Following {
    hub: Weak<Shared>,
    name: ConnectionName,
    execution: Weak<Execution>,
    /// `None` before the execution has a task.
    reporter: Option<Reporter>,
}

impl Following {
    /// Reports `status`, and returns whether the execution continues.
    fn apply(&mut self, status: &ExecutionStatus) -> bool {
        if self.reporter.is_none()
            && let Some(task) = &status.task
        {
            self.reporter = self.begin(&task.id);
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.report(status);
        }
        if status.ended.is_some() {
            self.forget();
        }
        status.ended.is_none()
    }

    fn begin(&self, task: &str) -> Option<Reporter> {
        let key = (self.name.clone(), task.to_owned());
        let followed = Followed {
            execution: self.execution.upgrade()?,
            progress_token: None,
        };
        let hub = self.hub.upgrade()?;
        hub.state.lock().followed.insert(key.clone(), followed);
        Some(Reporter {
            hub: self.hub.clone(),
            key,
            on_status: None,
            last: None,
        })
    }

    /// Forgets the task, unless a later execution follows it.
    fn forget(&self) {
        let (Some(reporter), Some(hub)) = (&self.reporter, self.hub.upgrade()) else {
            return;
        };
        let mut state = hub.state.lock();
        let is_ours = state.followed.get(&reporter.key).is_some_and(|followed| {
            std::ptr::eq(Arc::as_ptr(&followed.execution), self.execution.as_ptr())
        });
        let dropped = is_ours.then(|| state.followed.remove(&reporter.key));
        // The execution is dropped without the lock.
        drop(state);
        drop(dropped);
    }
}

/// Reports the changes of one task.
struct Reporter {
    hub: Weak<Shared>,
    key: (ConnectionName, String),
    on_status: Option<OnStatus>,
    last: Option<(HubUpdate, Option<Timestamp>)>,
}

impl Reporter {
    fn report(&mut self, status: &ExecutionStatus) {
        let Some(task) = &status.task else {
            return;
        };
        let progress = status.progress.as_ref();
        let update = HubUpdate {
            connection: self.key.0.clone(),
            task: self.key.1.clone(),
            status: task.status,
            message: task.message.clone(),
            progress: progress.map(|progress| progress.progress),
            total: progress.and_then(|progress| progress.total),
        };
        let current = Some((update, task.updated));
        if current == self.last {
            return;
        }
        self.last = current;
        if let Some((update, _)) = &self.last {
            if let Some(on_status) = &self.on_status {
                on_status(update);
            }
            if let Some(hub) = self.hub.upgrade() {
                let _ = hub.updates.send(update.clone());
            }
        }
    }
}

/// How many updates a slow reader may lag behind.
const UPDATE_CAPACITY: usize = 1_024;
