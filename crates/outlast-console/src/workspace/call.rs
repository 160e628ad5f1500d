//! Calls that are made from a workspace: inline or as tasks, several at once.
//!
//! A call ends once. If the connection ends while its task runs, the task is followed again as soon
//! as the connection is open.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlast::client::{
    Client, ConnectionName, Execution, ExecutionStatus, OutcomeError, TaskPreference,
};
use outlast::task::Outcome;
use outlast::wire::{PeerTask, Progress, Raw, Status};

use super::Workspace;
use super::address::Mode;
use super::error::WorkspaceError;
use super::events::{TaskStatusEvent, WorkspaceEvent};

/// The id of a call in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call to make.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The connection.
    pub connection: ConnectionName,
    /// The tool.
    pub tool: String,
    /// The arguments, an object.
    pub arguments: Raw,
    /// How it runs.
    pub placement: Placement,
    /// Two requests with the same key make one call. Without a key each makes its own.
    pub key: String,
}

/// How a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Without a task.
    Inline,
    /// As a task.
    Task {
        /// Its TTL in milliseconds; without it, that of the settings.
        ttl_ms: Option<u64>,
    },
}

/// A call and its state.
pub(super) struct CallRecord {
    connection: ConnectionName,
    tool: String,
    arguments: Raw,
    placement: Placement,
    key: String,
    began: SystemTime,
    ended: Option<SystemTime>,
    /// Grows with every change.
    revision: u64,
    status: Option<ExecutionStatus>,
    /// Why the call was not sent.
    refused: Option<String>,
    /// Whether the connection ended while the task ran.
    is_interrupted: bool,
    execution: Option<Arc<Execution>>,
    /// Counts the executions; only the last one counts.
    epoch: u64,
}

/// A call as a page shows it.
#[derive(Clone, Debug)]
pub struct CallView {
    /// Its id.
    pub id: CallId,
    /// The connection.
    pub connection: ConnectionName,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Raw,
    /// How it runs.
    pub placement: Placement,
    /// When it was made.
    pub began: SystemTime,
    /// When it ended.
    pub ended: Option<SystemTime>,
    /// Grows with every change.
    pub revision: u64,
    /// Its status, in the words of tasks.
    pub status: Status,
    /// Its status message.
    pub message: Option<String>,
    /// Its task, if the server has created one.
    pub task: Option<PeerTask>,
    /// Its latest progress.
    pub progress: Option<Progress>,
    /// The text that the server has for the model while the task runs.
    pub immediate_response: Option<String>,
    /// Whether a cancellation was requested.
    pub is_cancelling: bool,
    /// Whether the TTL of the task ends soon.
    pub is_expiring: bool,
    /// Why the structured result does not match the schema of the tool.
    pub output_mismatch: Option<String>,
    /// How it ended.
    pub outcome: Option<CallOutcome>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Result(Raw),
    /// With a result that the tool flagged as an error.
    ToolError(Raw),
    /// With a JSON-RPC error object.
    Error(Raw),
    /// By a cancellation.
    Cancelled,
    /// The outcome is not known. The text says why.
    Unknown(String),
}

impl CallId {
    /// The name of the call, which input requests of the server carry.
    fn name(self) -> String {
        format!("call-{}", self.0)
    }

    /// Reads [`CallId::name`].
    pub(super) fn named(name: &str) -> Option<Self> {
        name.strip_prefix("call-")?.parse().ok().map(Self)
    }
}

impl CallRecord {
    fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    fn view(&self, id: CallId, awaits_input: bool) -> CallView {
        let status = self.status.as_ref();
        let task = status.and_then(|status| status.task.clone());
        let progress = status.and_then(|status| status.progress.clone());
        let ended = status.and_then(|status| status.ended.clone());
        let outcome = match (&self.refused, ended) {
            (Some(why), _) => Some(CallOutcome::Unknown(why.clone())),
            (None, Some(ended)) if !self.is_interrupted => Some(CallOutcome::of(ended)),
            _ => None,
        };
        let word = match &outcome {
            Some(outcome) => outcome.status(),
            None => match task.as_ref().map(|task| task.status) {
                _ if awaits_input => Status::InputRequired,
                Some(Status::InputRequired) => Status::InputRequired,
                // The outcome is still on its way.
                _ => Status::Working,
            },
        };
        let outage = status.and_then(|status| status.outage.as_ref());
        let message = match (&outcome, outage) {
            (Some(CallOutcome::Unknown(why)), _) => Some(why.clone()),
            (None, _) if self.is_interrupted => {
                Some("the connection ended; the task is followed again when it is open".into())
            }
            (None, Some(outage)) => Some(format!("the server does not respond: {}", outage.why)),
            _ => task
                .as_ref()
                .and_then(|task| task.message.clone())
                .or_else(|| {
                    progress
                        .as_ref()
                        .and_then(|progress| progress.message.clone())
                }),
        };
        CallView {
            id,
            connection: self.connection.clone(),
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            placement: self.placement,
            began: self.began,
            ended: self.ended,
            revision: self.revision,
            status: word,
            message,
            task,
            progress,
            immediate_response: status.and_then(|status| status.immediate_response.clone()),
            is_cancelling: outcome.is_none() && status.is_some_and(|status| status.cancelling),
            is_expiring: outcome.is_none() && status.is_some_and(|status| status.expiring),
            output_mismatch: status.and_then(|status| status.output_mismatch.clone()),
            outcome,
        }
    }
}

impl CallView {
    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    fn event(&self) -> Option<TaskStatusEvent> {
        let task = self.task.as_ref()?;
        let progress = self.progress.as_ref();
        Some(TaskStatusEvent {
            server: self.connection.server.to_string(),
            source: self.connection.source.to_string(),
            task_id: task.id.clone(),
            status: self.status.as_str(),
            status_message: self.message.clone(),
            display_message: self
                .message
                .as_deref()
                .and_then(crate::status_text::replacement),
            progress: progress.map(|progress| progress.progress),
            total: progress.and_then(|progress| progress.total),
            revision: self.revision,
        })
    }
}

impl CallOutcome {
    fn of(ended: Result<Outcome, OutcomeError>) -> Self {
        match ended {
            Ok(Outcome::Result(result)) => Self::Result(result),
            Ok(Outcome::ToolError(result, _)) => Self::ToolError(result),
            Ok(Outcome::Error(error, ..)) => Self::Error(error),
            Ok(Outcome::Cancelled) => Self::Cancelled,
            Err(OutcomeError::Request(outlast::client::Error::Peer(error))) => {
                Self::Error(error.raw)
            }
            Err(error) => Self::Unknown(error.to_string()),
        }
    }

    fn status(&self) -> Status {
        match self {
            Self::Result(_) => Status::Completed,
            Self::Cancelled => Status::Cancelled,
            Self::ToolError(_) | Self::Error(_) | Self::Unknown(_) => Status::Failed,
        }
    }
}

impl Workspace {
    /// Makes a call in the background. A repeated request with the same key returns the first call.
    pub fn call(&self, request: CallRequest) -> Result<CallId, WorkspaceError> {
        if let Some(id) = self.call_of_key(&request.key) {
            return Ok(id);
        }
        let client = self.client(&request.connection)?;
        let mode = self.connection(&request.connection)?.mode();
        let id = {
            let mut state = self.0.state.lock();
            if let Some(id) = state.keys.get(&request.key) {
                return Ok(*id);
            }
            let open = state.calls.values().filter(|call| call.is_open()).count();
            if open >= MAX_OPEN_CALLS {
                return Err(WorkspaceError::TooManyCalls(open));
            }
            state.next_call += 1;
            let id = CallId(state.next_call);
            if !request.key.is_empty() {
                state.keys.insert(request.key.clone(), id);
            }
            let record = CallRecord {
                connection: request.connection.clone(),
                tool: request.tool.clone(),
                arguments: request.arguments.clone(),
                placement: request.placement,
                key: request.key.clone(),
                began: SystemTime::now(),
                ended: None,
                revision: 0,
                status: None,
                refused: None,
                is_interrupted: false,
                execution: None,
                epoch: 0,
            };
            state.calls.insert(id, record);
            id
        };
        self.send(WorkspaceEvent::Call(id));
        let workspace = self.clone();
        tokio::spawn(async move { workspace.start(id, &client, mode, request).await });
        Ok(id)
    }

    async fn start(&self, id: CallId, client: &Client, mode: Mode, request: CallRequest) {
        let connection = request.connection;
        let call = client
            .call_tool(request.tool, request.arguments)
            .named(id.name());
        let call = match request.placement {
            Placement::Task { ttl_ms } if mode != Mode::Plain => call
                .task(TaskPreference::Require)
                .ttl(Duration::from_millis(
                    ttl_ms.unwrap_or_else(|| self.0.settings.task_ttl_ms()),
                )),
            Placement::Task { .. } | Placement::Inline => call.task(TaskPreference::Forbid),
        };
        match call.await {
            Ok(execution) => self.follow(id, &connection, execution),
            Err(error) => {
                if let Some(record) = self.0.state.lock().calls.get_mut(&id) {
                    record.refused = Some(error.to_string());
                    record.ended = Some(SystemTime::now());
                    record.revision += 1;
                }
                self.send(WorkspaceEvent::Call(id));
            }
        }
    }

    /// Follows an execution until it ends.
    fn follow(&self, id: CallId, connection: &ConnectionName, execution: Execution) {
        let execution = self.0.hub.follow(connection, execution);
        let mut updates = execution.updates();
        let first = execution.status();
        let epoch = {
            let mut state = self.0.state.lock();
            let Some(record) = state.calls.get_mut(&id) else {
                return;
            };
            record.epoch += 1;
            record.is_interrupted = false;
            record.execution = Some(execution);
            record.epoch
        };
        self.update(id, epoch, first);
        let workspace = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some(status) = updates.next().await {
                match workspace.upgrade() {
                    Some(shared) => Self(shared).update(id, epoch, status),
                    None => return,
                }
            }
        });
    }

    fn update(&self, id: CallId, epoch: u64, mut status: ExecutionStatus) {
        let (ended, is_interrupted_now) = {
            let mut state = self.0.state.lock();
            let Some(record) = state.calls.get_mut(&id) else {
                return;
            };
            // A call ends once.
            if record.epoch != epoch || record.ended.is_some() {
                return;
            }
            record.revision += 1;
            // A call that is followed again knows its task from before.
            if let Some(before) = &record.status {
                status.task = status.task.take().or_else(|| before.task.clone());
                status.reference = status.reference.take().or_else(|| before.reference.clone());
            }
            record.is_interrupted = is_interrupted(&status);
            let is_interrupted_now = record.is_interrupted;
            let has_ended = status.ended.is_some() && !record.is_interrupted;
            let task = status.task.as_ref().map(|task| task.id.clone());
            record.status = Some(status);
            if has_ended {
                record.ended = Some(SystemTime::now());
                record.execution = None;
            }
            let connection = record.connection.clone();
            if has_ended {
                drop_old(&mut state);
            }
            (has_ended.then_some((connection, task)), is_interrupted_now)
        };
        if is_interrupted_now {
            self.resume_soon(id);
        }
        if let Some((connection, task)) = ended
            && let Ok(connection) = self.connection(&connection)
        {
            let name = id.name();
            // S1-87: an input request does not outlive its call.
            connection.inbox.end(|request| {
                request.call.as_deref() == Some(&name) || (task.is_some() && request.task == task)
            });
        }
        if let Some(event) = self.call_view(id).ok().and_then(|call| call.event()) {
            self.send(WorkspaceEvent::TaskStatus(event));
        }
        self.send(WorkspaceEvent::Call(id));
    }

    /// Follows a task again, if the connection was opened before the end of the previous one was
    /// noticed.
    fn resume_soon(&self, id: CallId) {
        let workspace = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(RESUME_DELAY).await;
            let Some(workspace) = workspace.upgrade().map(Workspace) else {
                return;
            };
            let name = {
                let state = workspace.0.state.lock();
                state.calls.get(&id).map(|call| call.connection.clone())
            };
            if let Some(name) = name
                && let Ok(client) = workspace.client(&name)
            {
                workspace.resume_calls(&name, &client);
            }
        });
    }

    /// Follows the tasks again that a lost connection interrupted.
    pub(super) fn resume_calls(&self, name: &ConnectionName, client: &Client) {
        let interrupted: Vec<_> = {
            let state = self.0.state.lock();
            let calls = state.calls.iter();
            calls
                .filter(|(_, call)| call.is_interrupted && call.connection == *name)
                .filter_map(|(id, call)| {
                    let reference = call.status.as_ref()?.reference.as_ref()?;
                    Some((*id, (**reference).clone()))
                })
                .collect()
        };
        for (id, reference) in interrupted {
            if let Ok(execution) = client.resume(reference) {
                self.follow(id, name, execution);
            }
        }
    }

    /// The calls, newest first.
    pub fn calls(&self) -> Vec<CallView> {
        let waiting = self.calls_that_wait();
        let state = self.0.state.lock();
        let calls = state.calls.iter().rev();
        calls
            .map(|(id, call)| call.view(*id, waiting.contains(id)))
            .collect()
    }

    /// One call.
    pub fn call_view(&self, id: CallId) -> Result<CallView, WorkspaceError> {
        let waiting = self.calls_that_wait();
        let state = self.0.state.lock();
        let call = state.calls.get(&id).ok_or(WorkspaceError::UnknownCall)?;
        Ok(call.view(id, waiting.contains(&id)))
    }

    /// The call of a request with this key.
    pub fn call_of_key(&self, key: &str) -> Option<CallId> {
        self.0.state.lock().keys.get(key).copied()
    }

    /// The call whose task has this id.
    pub fn call_of_task(&self, name: &ConnectionName, task: &str) -> Option<CallId> {
        let state = self.0.state.lock();
        let mut calls = state.calls.iter();
        let found = calls.find(|(_, call)| {
            let of = call.status.as_ref().and_then(|status| status.task.as_ref());
            call.connection == *name && of.is_some_and(|of| of.id == task)
        });
        found.map(|(id, _)| *id)
    }

    /// Cancels a call.
    pub async fn cancel_call(&self, id: CallId) -> Result<(), WorkspaceError> {
        let execution = {
            let state = self.0.state.lock();
            let call = state.calls.get(&id).ok_or(WorkspaceError::UnknownCall)?;
            call.execution.clone()
        };
        let execution = execution.ok_or(outlast::client::CancelError::Finished)?;
        Ok(execution.cancel().await?)
    }

    /// Cancels a task by its server, its source and its id (S4-66): one that was requested here, or
    /// one that is hosted for a server.
    pub async fn cancel_task(
        &self,
        name: &ConnectionName,
        task: &str,
    ) -> Result<(), WorkspaceError> {
        match self.call_of_task(name, task) {
            Some(id) => self.cancel_call(id).await,
            None => self.cancel_hosted(name, task).await,
        }
    }

    /// Removes the calls that have ended from the list.
    pub fn clear_calls(&self, name: &ConnectionName, tool: &str) {
        let mut state = self.0.state.lock();
        let of_tool = |call: &CallRecord| call.connection == *name && call.tool == tool;
        let ended: Vec<_> = state
            .calls
            .iter()
            .filter(|(_, call)| !call.is_open() && of_tool(call))
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            remove(&mut state, id);
        }
    }

    /// The calls with an input request that waits.
    fn calls_that_wait(&self) -> Vec<CallId> {
        self.pending()
            .into_iter()
            .filter_map(|item| item.call)
            .collect()
    }
}

/// Whether the connection ended while a task runs that can be followed again.
fn is_interrupted(status: &ExecutionStatus) -> bool {
    use outlast::client::Error::{TimedOut, Transport};
    let is_lost = matches!(
        &status.ended,
        Some(Err(OutcomeError::Request(Transport(_) | TimedOut(_))
            | OutcomeError::Lost {
                why: Transport(_) | TimedOut(_),
                ..
            }
            | OutcomeError::Detached))
    );
    let runs = status
        .task
        .as_ref()
        .is_some_and(|task| !task.status.is_terminal());
    is_lost && runs && status.reference.is_some()
}

/// Drops the oldest calls that have ended.
fn drop_old(state: &mut super::State) {
    let ended = state.calls.iter().filter(|(_, call)| !call.is_open());
    let ended: Vec<_> = ended.map(|(id, _)| *id).collect();
    let excess = ended.len().saturating_sub(MAX_ENDED_CALLS);
    for id in ended.into_iter().take(excess) {
        remove(state, id);
    }
}

fn remove(state: &mut super::State, id: CallId) {
    if let Some(call) = state.calls.remove(&id) {
        state.keys.remove(&call.key);
    }
}

/// How long a call waits before its task is followed again.
const RESUME_DELAY: Duration = Duration::from_millis(500);

/// How many calls run at the same time.
const MAX_OPEN_CALLS: usize = 64;

/// How many calls that have ended are kept.
const MAX_ENDED_CALLS: usize = 100;
