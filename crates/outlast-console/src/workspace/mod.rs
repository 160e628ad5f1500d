//! The workspace of a person: connections to servers, calls, and input requests of the servers.
//!
//! A connection has a server and a source, for example the file in which it is configured. Calls
//! survive a lost connection: their tasks are followed again when it is open. Everything is
//! bounded: connections, open calls, calls and messages that are kept.
//!
//! | where | what |
//! |---|---|
//! | `address`, `import` | how a server is reached; the servers of a host's file |
//! | `connection` | one connection: its state, its last error and what to do |
//! | `call` | one call of a tool |
//! | `pending` | input requests of servers that wait for an answer |
//! | `events` | what changed, for open pages |

mod address;
mod advice;
mod call;
mod connection;
mod error;
mod events;
mod import;
mod pending;
mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast::client::{ConnectionName, Hub};
use outlast::wire::PeerTask;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::traffic::{TrafficLimits, TrafficLog};
use call::CallRecord;
use connection::WorkspaceConnection;

pub use address::{Address, ConnectionSpec, Mode};
pub use call::{CallId, CallOutcome, CallRequest, CallView, Placement};
pub use connection::{ConnectionHealth, ConnectionView, ServerView};
pub use error::WorkspaceError;
pub use events::{TaskStatusEvent, WorkspaceEvent};
pub use import::{ImportError, import_servers};
pub use pending::{PendingId, PendingItem, removal_text};
pub use settings::WorkspaceSettings;

/// The connections and calls of a person. Cheap to clone.
#[derive(Clone)]
pub struct Workspace(Arc<Shared>);

struct Shared {
    hub: Hub,
    state: Mutex<State>,
    events: broadcast::Sender<WorkspaceEvent>,
    traffic: TrafficLog,
    settings: Arc<WorkspaceSettings>,
}

#[derive(Default)]
struct State {
    connections: BTreeMap<ConnectionName, Arc<WorkspaceConnection>>,
    next_connection: u64,
    calls: BTreeMap<CallId, CallRecord>,
    next_call: u64,
    /// The calls by the key of their request, so that a repeated request makes one call.
    keys: HashMap<String, CallId>,
}

/// A task that the workspace hosts for a server.
#[derive(Clone, Debug)]
pub struct HostedTask {
    /// The connection.
    pub connection: ConnectionName,
    /// The task.
    pub task: PeerTask,
    /// The method of the request behind it, while it waits for an answer.
    pub method: Option<&'static str>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// A workspace without connections.
    pub fn new() -> Self {
        let events = broadcast::channel(EVENT_CAPACITY).0;
        let announced = Arc::new(AtomicBool::new(false));
        let sender = events.clone();
        // Many messages make one event.
        let on_message = move || {
            if !announced.swap(true, Ordering::AcqRel) {
                let (announced, sender) = (announced.clone(), sender.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(TRAFFIC_EVENT_INTERVAL).await;
                    announced.store(false, Ordering::Release);
                    let _ = sender.send(WorkspaceEvent::Traffic);
                });
            }
        };
        Self(Arc::new(Shared {
            hub: Hub::new(),
            state: Mutex::default(),
            traffic: TrafficLog::new(TrafficLimits::default(), on_message),
            events,
            settings: Arc::default(),
        }))
    }

    /// The changes from now on. A slow reader misses some of them.
    pub fn events(&self) -> broadcast::Receiver<WorkspaceEvent> {
        self.0.events.subscribe()
    }

    /// The messages of all connections.
    pub fn traffic(&self) -> &TrafficLog {
        &self.0.traffic
    }

    /// The settings for calls and for tasks that servers create here.
    pub fn settings(&self) -> &WorkspaceSettings {
        &self.0.settings
    }

    /// Adds a connection and starts to connect.
    pub fn add(&self, spec: ConnectionSpec) -> Result<(), WorkspaceError> {
        let connection = {
            let mut state = self.0.state.lock();
            if state.connections.contains_key(&spec.name) {
                return Err(WorkspaceError::NameInUse(spec.name));
            }
            if state.connections.len() >= MAX_CONNECTIONS {
                return Err(WorkspaceError::TooManyConnections(MAX_CONNECTIONS));
            }
            state.next_connection += 1;
            let connection = Arc::new(WorkspaceConnection::new(state.next_connection, spec));
            let name = connection.name().clone();
            state.connections.insert(name, connection.clone());
            connection
        };
        connection.share(&self.roots());
        self.forward_inbox(&connection);
        self.connect(&connection);
        Ok(())
    }

    /// Ends a connection and forgets it. Its tasks run on at the server.
    pub fn remove(&self, name: &ConnectionName) -> Result<(), WorkspaceError> {
        let removed = self.0.state.lock().connections.remove(name);
        let connection = removed.ok_or_else(|| WorkspaceError::UnknownConnection(name.clone()))?;
        connection.stop();
        if let Some(client) = self.0.hub.remove(name) {
            tokio::spawn(async move { client.close().await });
        }
        self.send(WorkspaceEvent::Connection(name.clone()));
        Ok(())
    }

    /// Connects again, with another mode if one is given.
    pub fn reconnect(
        &self,
        name: &ConnectionName,
        mode: Option<Mode>,
    ) -> Result<(), WorkspaceError> {
        let connection = self.connection(name)?;
        if let Some(mode) = mode {
            connection.set_mode(mode);
        }
        self.connect(&connection);
        Ok(())
    }

    /// The connections, by name.
    pub fn connections(&self) -> Vec<ConnectionView> {
        let connections: Vec<_> = self.0.state.lock().connections.values().cloned().collect();
        connections
            .iter()
            .map(|connection| connection.view(self.0.hub.client(connection.name()).ok()))
            .collect()
    }

    /// Waits until a connection is open or has failed, up to `timeout`.
    pub async fn settled(&self, name: &ConnectionName, timeout: Duration) {
        let mut events = self.events();
        let is_connecting = || {
            let view = self.connection_view(name);
            view.is_ok_and(|view| view.health == ConnectionHealth::Connecting)
        };
        let settled = async {
            while is_connecting() {
                // After a lag the state is read again, too.
                let _ = events.recv().await;
            }
        };
        let _ = tokio::time::timeout(timeout, settled).await;
    }

    /// One connection.
    pub fn connection_view(&self, name: &ConnectionName) -> Result<ConnectionView, WorkspaceError> {
        let connection = self.connection(name)?;
        Ok(connection.view(self.0.hub.client(name).ok()))
    }

    /// Measures how fast the server responds.
    pub async fn ping(&self, name: &ConnectionName) -> Result<Duration, WorkspaceError> {
        let connection = self.connection(name)?;
        let began = tokio::time::Instant::now();
        self.client(name)?.ping().await?;
        let took = began.elapsed();
        connection.ping_took(took);
        self.send(WorkspaceEvent::Connection(name.clone()));
        Ok(took)
    }

    /// The tools of a server.
    pub async fn tools(
        &self,
        name: &ConnectionName,
    ) -> Result<Arc<[outlast::client::ToolInfo]>, WorkspaceError> {
        Ok(self.client(name)?.tools().await?)
    }

    /// The tools of a server, without the cache.
    pub async fn fresh_tools(
        &self,
        name: &ConnectionName,
    ) -> Result<Arc<[outlast::client::ToolInfo]>, WorkspaceError> {
        Ok(self.client(name)?.fresh_tools().await?)
    }

    /// The URIs of the folders that servers may use (S1-6).
    pub fn roots(&self) -> Vec<String> {
        self.0.settings.roots.lock().clone()
    }

    /// Sets the folders that servers may use, and notifies the servers (S1-12).
    pub fn set_roots(&self, roots: Vec<String>) {
        {
            let mut current = self.0.settings.roots.lock();
            if *current == roots {
                return;
            }
            current.clone_from(&roots);
        }
        let connections: Vec<_> = self.0.state.lock().connections.values().cloned().collect();
        for connection in connections {
            connection.share(&roots);
            if let Ok(client) = self.0.hub.client(connection.name()) {
                tokio::spawn(async move {
                    // A server that cannot be reached asks for them when it needs them.
                    let _ = client.roots_changed().await;
                });
            }
        }
    }

    /// The tasks that this workspace hosts for servers.
    pub async fn hosted_tasks(&self) -> Vec<HostedTask> {
        let mut hosted = Vec::new();
        let pending = self.pending();
        for name in self.0.hub.connections() {
            let Ok(client) = self.0.hub.client(&name) else {
                continue;
            };
            if client.connection_state() != outlast::client::ConnectionState::Open {
                continue;
            }
            let Ok(Some(tasks)) = client.hosted_tasks().await else {
                continue;
            };
            let mut cursor: Option<String> = None;
            while hosted.len() < MAX_HOSTED_TASKS {
                let Ok(page) = tasks.list(cursor.as_deref()).await else {
                    break;
                };
                hosted.extend(page.tasks.into_iter().map(|task| {
                    HostedTask {
                        connection: name.clone(),
                        method: pending
                            .iter()
                            .find(|item| item.request.hosted_task.as_ref() == Some(&task.id))
                            .map(|item| item.request.kind.method()),
                        task,
                    }
                }));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        hosted
    }

    /// Cancels a task that this workspace hosts for a server.
    pub async fn cancel_hosted(
        &self,
        name: &ConnectionName,
        task: &str,
    ) -> Result<(), WorkspaceError> {
        let hosted = self.client(name)?.hosted_tasks().await?;
        let hosted = hosted.ok_or_else(|| WorkspaceError::UnknownTask(task.to_owned()))?;
        let cancelled = hosted.cancel(task).await;
        cancelled.map_err(|error| WorkspaceError::Refused(error.message.clone()))?;
        self.send(WorkspaceEvent::Hosted);
        Ok(())
    }

    /// Ends all connections, and the processes that they started.
    pub async fn close(&self) {
        let names: Vec<_> = self.0.state.lock().connections.keys().cloned().collect();
        for name in names {
            if let Ok(connection) = self.connection(&name) {
                connection.stop();
            }
            if let Some(client) = self.0.hub.remove(&name) {
                client.close().await;
            }
        }
    }

    fn connection(
        &self,
        name: &ConnectionName,
    ) -> Result<Arc<WorkspaceConnection>, WorkspaceError> {
        let found = self.0.state.lock().connections.get(name).cloned();
        found.ok_or_else(|| WorkspaceError::UnknownConnection(name.clone()))
    }

    /// The client of an open connection.
    fn client(&self, name: &ConnectionName) -> Result<outlast::client::Client, WorkspaceError> {
        let connection = self.connection(name)?;
        let client = self.0.hub.client(name).ok();
        client.filter(|client| !client.is_closed()).ok_or_else(|| {
            WorkspaceError::NotConnected(name.clone(), connection.view(None).health.brief())
        })
    }

    fn send(&self, event: WorkspaceEvent) {
        let _ = self.0.events.send(event);
    }
}

/// How many connections a workspace has.
const MAX_CONNECTIONS: usize = 32;

/// How many hosted tasks are listed.
const MAX_HOSTED_TASKS: usize = 500;

/// How many events a slow reader may lag behind.
const EVENT_CAPACITY: usize = 1_024;

/// The smallest time between two events about messages.
const TRAFFIC_EVENT_INTERVAL: Duration = Duration::from_millis(400);
#[cfg(test)]
mod tests;
