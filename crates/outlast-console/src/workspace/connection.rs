//! One connection: its state, its last error, and what to do about it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlast::client::{
    Client, ClientOptions, ConnectionName, ConnectionState, Error, Generation, Inbox, InboxEvent,
    ReceiverOptions, ReceiverTtl, ReconnectPolicy, ServerDescription,
};
use outlast::task::InputKinds;
use outlast::wire::Raw;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;

use super::Workspace;
use super::address::{Address, ConnectionSpec, Mode, output_to};
use super::advice::next_step;
use super::events::WorkspaceEvent;
use super::pending::PendingId;

/// One connection of a workspace. It keeps its place when it is opened again.
pub(super) struct WorkspaceConnection {
    number: u64,
    name: ConnectionName,
    address: Address,
    is_removable: bool,
    pub(super) inbox: Inbox,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// Counts the attempts to connect; only the last one counts.
    attempt: u64,
    is_connecting: bool,
    fault: Option<ConnectionFault>,
    server: Option<ServerDescription>,
    opened: Option<SystemTime>,
    ping: Option<Duration>,
    /// The last lines that the command printed and that are not messages.
    printed: VecDeque<String>,
}

/// Why a connection is not open, and what to do.
#[derive(Clone)]
struct ConnectionFault {
    why: String,
    next: &'static str,
    at: SystemTime,
}

/// A connection as a page shows it.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Its server and its source.
    pub name: ConnectionName,
    /// The address without secrets.
    pub address: String,
    /// The words of the address.
    pub words: Vec<String>,
    /// Whether a command starts the server.
    pub starts_process: bool,
    /// The names of headers or environment variables, whose values are not shown.
    pub secret_names: Vec<String>,
    /// How its tasks are used.
    pub mode: Mode,
    /// Whether it is open.
    pub health: ConnectionHealth,
    /// The server, if it has been reached.
    pub server: Option<ServerView>,
    /// The capabilities that this client declares.
    pub declared: Option<Raw>,
    /// When it was opened last.
    pub opened: Option<SystemTime>,
    /// How long the last ping took.
    pub ping: Option<Duration>,
    /// The last error, and when it happened.
    pub last_error: Option<(String, SystemTime)>,
    /// The last lines that the command printed and that are not messages.
    pub printed: Vec<String>,
    /// Whether it can be removed.
    pub is_removable: bool,
}

/// A server as a page shows it.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// The name that it gives itself.
    pub name: String,
    /// Its protocol version.
    pub version: String,
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// How it supports tasks.
    pub generation: Generation,
    /// Its capabilities.
    pub capabilities: Raw,
    /// What it says about itself.
    pub info: Option<Raw>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
}

/// Whether a connection is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionHealth {
    /// It is being opened for the first time.
    Connecting,
    /// It is open.
    Open,
    /// It was lost and is being opened again.
    Reconnecting {
        /// Why it was lost.
        why: String,
    },
    /// It could not be opened, or has ended.
    Failed {
        /// Why.
        why: String,
        /// What to do.
        next: &'static str,
    },
}

impl ConnectionHealth {
    /// The name for styles and tests.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Open => "open",
            Self::Reconnecting { .. } => "reconnecting",
            Self::Failed { .. } => "failed",
        }
    }

    /// The name for people.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Connecting => "Connecting",
            Self::Open => "Connected",
            Self::Reconnecting { .. } => "Reconnecting",
            Self::Failed { .. } => "Not connected",
        }
    }

    /// Why the connection is not open.
    pub(super) fn brief(&self) -> String {
        match self {
            Self::Open => "the connection is open".into(),
            Self::Connecting => "it is still connecting".into(),
            Self::Reconnecting { why } => format!("it is reconnecting ({why})"),
            Self::Failed { why, .. } => why.clone(),
        }
    }
}

impl WorkspaceConnection {
    pub(super) fn new(number: u64, spec: ConnectionSpec) -> Self {
        Self {
            number,
            name: spec.name,
            address: spec.address,
            is_removable: spec.is_removable,
            inbox: Inbox::new(InputKinds::all()),
            state: Mutex::new(State {
                mode: spec.mode,
                ..State::default()
            }),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn name(&self) -> &ConnectionName {
        &self.name
    }

    pub(super) fn mode(&self) -> Mode {
        self.state.lock().mode
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.state.lock().mode = mode;
    }

    pub(super) fn ping_took(&self, took: Duration) {
        self.state.lock().ping = Some(took);
    }

    /// Sets the folders that the server may use.
    pub(super) fn share(&self, roots: &[String]) {
        self.inbox
            .share(roots.iter().map(|uri| (uri.clone(), None)));
    }

    /// Ends the attempt that runs.
    pub(super) fn stop(&self) {
        self.state.lock().attempt += 1;
    }

    fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.attempt += 1;
        state.is_connecting = true;
        state.printed.clear();
        state.attempt
    }

    /// Whether `attempt` is the last one.
    fn is_current(&self, attempt: u64) -> bool {
        self.state.lock().attempt == attempt
    }

    fn opened(&self, server: Option<ServerDescription>) {
        let mut state = self.state.lock();
        state.is_connecting = false;
        state.opened = Some(SystemTime::now());
        state.server = server;
        state.ping = None;
    }

    fn failed(&self, error: &Error) {
        let mut state = self.state.lock();
        state.is_connecting = false;
        state.fault = Some(ConnectionFault {
            why: error.to_string(),
            next: next_step(error, self.address.starts_process()),
            at: SystemTime::now(),
        });
    }

    fn printed(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.printed.len() >= MAX_PRINTED_LINES {
            state.printed.pop_front();
        }
        state
            .printed
            .push_back(line.chars().take(MAX_LINE_CHARS).collect());
    }

    /// What a page shows. `client` is the client of the connection, if there is one.
    pub(super) fn view(&self, client: Option<Client>) -> ConnectionView {
        let state = self.state.lock();
        let fault = || {
            let fault = state.fault.clone();
            fault.map_or(
                ConnectionHealth::Failed {
                    why: "the connection has ended".into(),
                    next: "Reconnect.",
                },
                |fault| ConnectionHealth::Failed {
                    why: fault.why,
                    next: fault.next,
                },
            )
        };
        let health = if state.is_connecting {
            ConnectionHealth::Connecting
        } else {
            match client.as_ref().map(Client::connection_state) {
                Some(ConnectionState::Open) => ConnectionHealth::Open,
                Some(ConnectionState::Reconnecting(reason)) => ConnectionHealth::Reconnecting {
                    why: reason.to_string(),
                },
                Some(ConnectionState::Closed(reason)) => ConnectionHealth::Failed {
                    next: next_step(&reason.clone().into(), self.address.starts_process()),
                    why: reason.to_string(),
                },
                _ => fault(),
            }
        };
        ConnectionView {
            name: self.name.clone(),
            address: self.address.text(),
            words: self.address.words(),
            starts_process: self.address.starts_process(),
            secret_names: self.address.secret_names(),
            mode: state.mode,
            health,
            server: state.server.as_ref().map(ServerView::of),
            declared: client.map(|client| client.declared_capabilities().clone()),
            opened: state.opened,
            ping: state.ping,
            last_error: state
                .fault
                .as_ref()
                .map(|fault| (fault.why.clone(), fault.at)),
            printed: state.printed.iter().cloned().collect(),
            is_removable: self.is_removable,
        }
    }
}

impl ServerView {
    fn of(server: &ServerDescription) -> Self {
        Self {
            name: server.name.to_string(),
            version: server.version.to_string(),
            era: if server.is_modern() {
                "modern"
            } else {
                "legacy"
            },
            generation: server.generation,
            capabilities: server.capabilities.clone(),
            info: server.info.clone(),
            instructions: server.instructions.clone(),
        }
    }
}

impl Workspace {
    /// Opens a connection in the background. An attempt that runs already is dropped.
    pub(super) fn connect(&self, connection: &Arc<WorkspaceConnection>) {
        let attempt = connection.begin();
        let (workspace, connection) = (self.clone(), connection.clone());
        self.send(WorkspaceEvent::Connection(connection.name.clone()));
        tokio::spawn(async move { workspace.open(&connection, attempt).await });
    }

    async fn open(&self, connection: &Arc<WorkspaceConnection>, attempt: u64) {
        let name = connection.name.clone();
        // The previous process ends before the next one starts.
        if let Some(previous) = self.0.hub.remove(&name) {
            previous.close().await;
        }
        let opened = Client::connect(
            connection.address.target(output_to({
                let connection = connection.clone();
                move |line| connection.printed(line)
            })),
            self.options(connection),
        )
        .await;
        if !connection.is_current(attempt) {
            if let Ok(client) = opened {
                client.close().await;
            }
            return;
        }
        match opened {
            Ok(client) => {
                connection.opened(client.server().await.ok());
                if self.0.hub.add(name.clone(), client.clone()).is_ok() {
                    self.watch(connection, &client, attempt);
                    self.resume_calls(&name, &client);
                }
            }
            Err(error) => connection.failed(&error),
        }
        self.send(WorkspaceEvent::Connection(name.clone()));
        self.send(WorkspaceEvent::Tools(name));
    }

    fn options(&self, connection: &Arc<WorkspaceConnection>) -> ClientOptions {
        let settings = self.0.settings.clone();
        let (events, name) = (self.0.events.clone(), connection.name.clone());
        // S1-61: one setting for calls and for tasks of servers.
        let ttl = move || Duration::from_millis(settings.task_ttl_ms());
        let receiver = ReceiverOptions::default().with_ttl(ReceiverTtl::Chosen(Arc::new(ttl)));
        ClientOptions::default()
            .with_server_name(&*connection.name.server)
            .with_era(connection.mode().era())
            .with_handler(Arc::new(connection.inbox.clone()))
            .with_receiver_tasks(receiver)
            .with_reconnect(ReconnectPolicy::default())
            .with_observer(self.0.traffic.observer(connection.name.clone()))
            .with_on_notification(Arc::new(move |method, _| {
                if method == "notifications/tools/list_changed" {
                    let _ = events.send(WorkspaceEvent::Tools(name.clone()));
                }
            }))
    }

    /// Reports the changes of a connection until it ends.
    fn watch(&self, connection: &Arc<WorkspaceConnection>, client: &Client, attempt: u64) {
        let mut changes = client.connection_changes();
        let workspace = Arc::downgrade(&self.0);
        let connection = Arc::downgrade(connection);
        tokio::spawn(async move {
            while let Some(changed) = changes.next().await {
                let (Some(workspace), Some(connection)) =
                    (workspace.upgrade().map(Workspace), connection.upgrade())
                else {
                    return;
                };
                if !connection.is_current(attempt) {
                    return;
                }
                match &changed {
                    ConnectionState::Open => {
                        if let Ok(client) = workspace.0.hub.client(&connection.name) {
                            connection.opened(client.server().await.ok());
                        }
                    }
                    ConnectionState::Closed(reason) | ConnectionState::Reconnecting(reason) => {
                        connection.failed(&reason.clone().into());
                    }
                    _ => {}
                }
                workspace.send(WorkspaceEvent::Connection(connection.name.clone()));
                workspace.send(WorkspaceEvent::Tools(connection.name.clone()));
                if matches!(changed, ConnectionState::Closed(_)) {
                    return;
                }
            }
        });
    }

    /// Reports the input requests of a connection as long as it exists.
    pub(super) fn forward_inbox(&self, connection: &Arc<WorkspaceConnection>) {
        let mut events = connection.inbox.events();
        let workspace = Arc::downgrade(&self.0);
        let number = connection.number;
        let connection = Arc::downgrade(connection);
        tokio::spawn(async move {
            loop {
                let event = events.recv().await;
                let Some(workspace) = workspace.upgrade().map(Workspace) else {
                    return;
                };
                if connection.upgrade().is_none() {
                    return;
                }
                let id = |item| PendingId {
                    connection: number,
                    item,
                };
                let event = match event {
                    Ok(InboxEvent::NewPendingSample(item)) => {
                        WorkspaceEvent::NewPendingSample(id(item))
                    }
                    Ok(InboxEvent::NewPendingElicitation(item)) => {
                        WorkspaceEvent::NewPendingElicitation(id(item))
                    }
                    Ok(InboxEvent::Removed(item)) => WorkspaceEvent::PendingRemoved(id(item)),
                    Err(RecvError::Lagged(_)) => WorkspaceEvent::Hosted,
                    Err(RecvError::Closed) => return,
                };
                workspace.send(event);
                workspace.send(WorkspaceEvent::Hosted);
            }
        });
    }
}

/// How many lines of a command are kept.
const MAX_PRINTED_LINES: usize = 20;

/// How many characters of a line are kept.
const MAX_LINE_CHARS: usize = 400;
