//! The server side: decodes the era and generation of clients, owns sessions and streams.
//!
//! The engine owns storage and transitions, the transports own bytes and sockets. This module
//! decides who may call what, what a response looks like, and on which stream a message is sent.

mod access;
mod announce;
mod audit;
mod backend;
mod client_handle;
mod client_info;
mod delivery;
mod filters;
mod key_ring;
mod legacy;
mod list_change;
mod message_stream;
mod middleware;
mod modern;
mod prestart;
mod response;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use outlast_engine::{Engine, Owner, TaskId};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::TaskSupport;
use parking_lot::{Mutex, MutexGuard};

pub use access::{Identity, Scopes, UnknownScope};
pub(crate) use access::{check, check_notification, check_request, denied};
pub use backend::{
    Backend, BackendDescription, HttpParts, ListenGuard, PreparedCall, PrestartInfo, RequestParts,
    Reservation,
};
pub use client_handle::{ClientHandle, ExtensionKey};
pub(crate) use client_info::ClientInfo;
use delivery::PendingCalls;
pub use delivery::{TaskPolicy, WaitBudget, WaitPolicy};
pub use filters::{FilteredRequest, ListedTool, RequestError, TaskInfo, TaskList, ToolList};
pub(crate) use key_ring::KeyRing;
pub use list_change::ListChange;
pub(crate) use message_stream::{MessageStream, StreamMessage};
pub use middleware::{IncomingRequest, Middleware, Next, Reply, RequestContext};
pub(crate) use modern::{
    Caller, ModernRequest, NotificationSink, RequestMeta, is_modern_only, missing_meta,
    stdio_request_meta,
};
pub(crate) use response::{ActiveRequest, Response, line};
use response::{HandlerFuture, ResponseStream};
#[cfg(feature = "http")]
pub(crate) use session::{HOME_KIND, home_of_session};
pub(crate) use session::{
    LiveSession, SessionLimitReached, SessionLimits, SessionTable, Sessions, StreamEvent, StreamId,
    StreamKind, StreamPermit, StreamReader,
};
pub use session::{Session, SessionId};

/// An MCP server: an engine, the backend that it serves, and its sessions.
pub struct McpServer {
    pub(crate) engine: Engine,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    /// Whether it has tasks, if that does not depend on its tools (S2-9).
    tasks: Option<bool>,
    /// Whether its legacy sessions can access the tasks of every owner.
    for_operator: bool,
    /// Encrypts what clients and other nodes return.
    pub(crate) keys: KeyRing,
    modern: modern::ModernState,
    /// Slow calls of clients without task support.
    pending_calls: PendingCalls,
    /// The session that receives the events of an open task.
    followers: Mutex<HashMap<TaskId, Weak<Session>>>,
    /// Initialized sessions, for change notifications.
    sessions: Mutex<HashMap<SessionId, Weak<Session>>>,
}

impl McpServer {
    /// Creates a server for a backend whose runners are registered at the engine. The first
    /// middleware is the outermost one.
    pub(crate) fn new(
        engine: Engine,
        backend: Arc<dyn Backend>,
        middleware: Vec<Arc<dyn Middleware>>,
        tasks: Option<bool>,
    ) -> Arc<Self> {
        Self::build(engine, backend, middleware, tasks, false)
    }

    /// A server for the operator: its legacy sessions can access the tasks of every owner by id.
    pub fn for_operator(engine: Engine, backend: Arc<dyn Backend>) -> Arc<Self> {
        Self::build(engine, backend, Vec::new(), None, true)
    }

    fn build(
        engine: Engine,
        backend: Arc<dyn Backend>,
        middleware: Vec<Arc<dyn Middleware>>,
        tasks: Option<bool>,
        for_operator: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|server| {
            backend.attach(server);
            Self {
                keys: KeyRing::new(engine.store().clone()),
                engine,
                backend,
                middleware,
                tasks,
                for_operator,
                modern: modern::ModernState::default(),
                pending_calls: PendingCalls::default(),
                followers: Mutex::default(),
                sessions: Mutex::default(),
            }
        })
    }

    /// Describes the backend to a client.
    pub(crate) async fn describe(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<BackendDescription, ErrorObject> {
        let mut description = self.backend.describe(client).await?;
        description.tasks = self.tasks.unwrap_or(description.tasks);
        Ok(description)
    }

    /// Whether the server has tasks, if that is known without a request to an upstream.
    pub(crate) fn has_tasks(&self, client: &ClientHandle) -> Option<bool> {
        self.tasks.or_else(|| self.backend.has_tasks(client))
    }

    /// Prepares a call. Without tasks, no tool runs as one.
    pub(crate) async fn prepare(
        &self,
        client: &Arc<ClientHandle>,
        tool: &str,
    ) -> Result<Option<PreparedCall>, ErrorObject> {
        let mut prepared = self.backend.prepare(client, tool).await?;
        if let Some(prepared) = prepared.as_mut().filter(|_| self.tasks == Some(false)) {
            prepared.support = TaskSupport::Forbidden;
        }
        Ok(prepared)
    }

    /// Adds a session whose client has sent `initialize`.
    pub(crate) fn add_session(&self, id: &SessionId, session: &Weak<Session>) {
        self.lock_sessions().insert(id.clone(), session.clone());
    }

    /// Removes a session. A session that was restored under the same id stays.
    pub(crate) fn remove_session(&self, id: &SessionId, session: &Weak<Session>) {
        let mut sessions = self.lock_sessions();
        if sessions.get(id).is_some_and(|known| known.ptr_eq(session)) {
            sessions.remove(id);
        }
    }

    /// The initialized sessions.
    fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.lock_sessions();
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    /// Makes `session` the follower of a task, unless another reachable session follows it.
    pub(crate) fn claim_follower(&self, task: TaskId, session: &Arc<Session>) -> bool {
        let mut followers = self.followers();
        let taken = followers
            .get(&task)
            .and_then(Weak::upgrade)
            .is_some_and(|follower| Arc::ptr_eq(&follower, session) || follower.is_reachable());
        if !taken {
            followers.insert(task, Arc::downgrade(session));
        }
        !taken
    }

    /// Whether `session` follows a task.
    pub(crate) fn is_follower(&self, task: TaskId, session: &Weak<Session>) -> bool {
        self.followers()
            .get(&task)
            .is_some_and(|follower| follower.ptr_eq(session))
    }

    /// Stops `session` from following a task.
    pub(crate) fn drop_follower(&self, task: TaskId, session: &Weak<Session>) {
        let mut followers = self.followers();
        if followers
            .get(&task)
            .is_some_and(|follower| follower.ptr_eq(session))
        {
            followers.remove(&task);
        }
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Session>>> {
        self.sessions.lock()
    }

    fn followers(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<Session>>> {
        self.followers.lock()
    }
}

/// The owner on stdio: the user who started the process.
pub fn local_owner() -> Owner {
    Owner::Local
}

/// The name of the runner in the stored tasks of a [`Server`](crate::Server).
pub(crate) const RUNNER: &str = "tools";
