//! Our face towards clients: decodes their era and generation, owns sessions and streams.
//!
//! Storage and transitions are the engine's; bytes and sockets are the transports'. Here is who may call
//! what, what an answer looks like, and on which stream a message travels.

mod announce;
mod audit;
mod backend;
mod client_handle;
mod client_info;
mod delivery;
mod errors;
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
use parking_lot::{Mutex, MutexGuard};

use crate::Own;
use crate::tools::Tools;

pub use backend::{
    Arrival, Backend, HttpParts, Introduction, Listening, PreparedCall, Prestarted, Reservation,
};
pub use client_handle::{Client, Keeper};
pub(crate) use client_info::Peer;
use delivery::Held;
pub use delivery::{Delivery, Holding, Patience};
pub(crate) use errors::{cancel_to_wire, to_wire};
pub use list_change::Change;
pub(crate) use message_stream::{MessageStream, StreamMessage};
pub use middleware::{Filter, Incoming, Next, Reply};
pub(crate) use modern::{
    Outlet, Request, Said, Visitor, is_modern_only, nothing_said, said_on_pipe,
};
pub(crate) use response::{Handling, Response, line};
use response::{ResponseStream, Work};
pub(crate) use session::{
    Attached, Bounds, Entry, Kind, NoRoom, Out, Permit, SessionTable, Sessions, StreamId,
};
pub use session::{Session, SessionId};

/// What a server offers, and to whom.
pub struct Front {
    pub(crate) engine: Engine,
    pub(crate) service: Arc<dyn Backend>,
    pub(crate) filters: Vec<Arc<dyn Filter>>,
    /// Whether its sessions reach the tasks of every owner.
    for_operator: bool,
    modern: modern::Modern,
    /// Calls that take long and whose callers take no tasks.
    held: Held,
    /// Which session hears of a task that runs or waits: the one that made it.
    followers: Mutex<HashMap<TaskId, Weak<Session>>>,
    /// Those whose clients are told what changes.
    sessions: Mutex<HashMap<SessionId, Weak<Session>>>,
}

/// Who a server is.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What the model should know about it.
    pub instructions: Option<String>,
}

impl Front {
    /// A front for `tools`, which the engine runs under [`RUNNER`].
    pub fn new(engine: Engine, tools: Arc<Tools>, about: About) -> Arc<Self> {
        Self::filtered(engine, tools, about, Vec::new())
    }

    /// The same with filters around every request, the outermost first.
    pub fn filtered(
        engine: Engine,
        tools: Arc<Tools>,
        about: About,
        filters: Vec<Arc<dyn Filter>>,
    ) -> Arc<Self> {
        Self::serving(engine, Arc::new(Own::new(tools, about)), filters)
    }

    /// A front for any backend, whose runners the engine has, with filters around every request.
    pub fn serving(
        engine: Engine,
        service: Arc<dyn Backend>,
        filters: Vec<Arc<dyn Filter>>,
    ) -> Arc<Self> {
        Self::reaching(engine, service, filters, false)
    }

    /// A front for the person who runs the server: its legacy sessions reach the tasks of every owner by their ids.
    pub fn for_operator(engine: Engine, service: Arc<dyn Backend>) -> Arc<Self> {
        Self::reaching(engine, service, Vec::new(), true)
    }

    fn reaching(
        engine: Engine,
        service: Arc<dyn Backend>,
        filters: Vec<Arc<dyn Filter>>,
        for_operator: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|front| {
            service.stands_behind(front);
            Self {
                engine,
                service,
                filters,
                for_operator,
                modern: modern::Modern::default(),
                held: Held::default(),
                followers: Mutex::default(),
                sessions: Mutex::default(),
            }
        })
    }

    /// A session whose client has introduced itself.
    pub(crate) fn meet(&self, id: &SessionId, session: &Weak<Session>) {
        self.lock_sessions().insert(id.clone(), session.clone());
    }

    /// A session is over. One that was taken up again under its name stays.
    pub(crate) fn leave(&self, id: &SessionId, session: &Weak<Session>) {
        let mut sessions = self.lock_sessions();
        if sessions.get(id).is_some_and(|known| known.ptr_eq(session)) {
            sessions.remove(id);
        }
    }

    /// The sessions whose clients have introduced themselves.
    fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.lock_sessions();
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    /// Makes `session` the one that hears of a task, unless one does already that can be reached.
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

    /// Whether it is `session` that hears of a task.
    pub(crate) fn is_follower(&self, task: TaskId, session: &Weak<Session>) -> bool {
        self.followers()
            .get(&task)
            .is_some_and(|follower| follower.ptr_eq(session))
    }

    /// Nobody hears of a task any more, if it was `session` that did.
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

/// The owner on a pipe: whoever started the process.
pub fn local_owner() -> Owner {
    Owner::Local
}

/// The name under which the engine runs the tools of a front.
pub const RUNNER: &str = "tools";
