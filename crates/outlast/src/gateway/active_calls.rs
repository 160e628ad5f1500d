//! The calls under way on one connection to an upstream: whose input requests and log messages arrive there, and what a
//! previous run of this process left of them.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::engine::CallContext;
use outlast_engine::{InputKey, InputResponse, TaskId, random};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::again::CallPlace;
use super::connection::Connection;
use crate::client::Era;
use crate::transport::http_client::SavedSession;

/// The calls under way on one connection.
#[derive(Default)]
pub(super) struct ActiveCalls(Mutex<State>);

#[derive(Default)]
struct State {
    /// The calls that are under way, by the name that their questions carry.
    calls: HashMap<Arc<str>, Seat>,
    /// Input requests of these calls that a previous run of this process has put to its clients, and that the upstream has not
    /// sent again.
    left: HashMap<Arc<str>, Vec<LeftRequest>>,
    /// What is stored to find these calls again.
    places: HashMap<Arc<str>, Arc<CallPlace>>,
    /// The calls that go on with these tasks of the upstream after a restart.
    resumed: HashMap<String, Arc<str>>,
}

/// The place of a call among those under way.
#[derive(Clone)]
pub(super) enum Seat {
    Taken(CallContext),
    /// Of a call that a previous run of this process began, and that waits for the connection.
    Resuming(CallContext),
    /// Kept for a call that has begun at the upstream, and soon here.
    Kept(watch::Receiver<Option<CallContext>>),
}

/// A call that a previous run of this process began: what it has asked is not asked a second time.
#[derive(Clone)]
pub(super) struct ResumedCall {
    pub(super) call: CallContext,
    /// The upstream's task.
    pub(super) task: Option<String>,
    /// What is stored of it.
    pub(super) place: Arc<CallPlace>,
    /// Its input requests that are open or answered.
    pub(super) left: Vec<LeftRequest>,
    /// The session that it was in, where the upstream has sessions.
    pub(super) session: Option<SavedSession>,
    /// The era in which the upstream was spoken to.
    pub(super) era: Era,
}

/// An input request that a previous run of this process has put to its client.
#[derive(Clone)]
pub(super) struct LeftRequest {
    pub(super) key: InputKey,
    /// The answer, where it is waited for already; closed if there will be none.
    pub(super) answer: Option<watch::Receiver<Option<InputResponse>>>,
}

impl ResumedCall {
    /// Whether both are the same call.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.call.id() == other.call.id()
    }
}

/// That a call is under way on a connection.
pub(super) struct UnderWay {
    connection: Arc<Connection>,
    name: Arc<str>,
    /// Says whose it is, where that is not known from the beginning.
    kept: Option<watch::Sender<Option<CallContext>>>,
}

impl ActiveCalls {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        let mut state = self.0.lock();
        state.forget_cancelled();
        state.calls.is_empty()
    }

    /// The call of that name, or the one that goes on with this task of the upstream; without either, the only call there is.
    pub(super) fn find(&self, name: Option<&str>, task: Option<&str>) -> Result<Seat, Unclear> {
        let mut state = self.0.lock();
        state.forget_cancelled();
        let resumed = task.and_then(|task| state.resumed.get(task)).cloned();
        let name = name.or(resumed.as_deref());
        if let Some(call) = name.and_then(|name| state.calls.get(name)) {
            return Ok(call.clone());
        }
        // A call that is cancelled is still there while it tidies up.
        let (live, cancelled): (Vec<_>, Vec<_>) =
            state.calls.values().partition(|call| !call.is_cancelled());
        match (&live[..], &cancelled[..]) {
            ([call], _) | ([], [call]) => Ok((*call).clone()),
            ([], []) => Err(Unclear::None),
            _ => Err(Unclear::Several),
        }
    }

    /// A call of a previous run of this process goes on, unless it does already.
    pub(super) fn resume(&self, resumed: &ResumedCall) {
        let name = name_of(&resumed.call);
        let mut state = self.0.lock();
        if state.calls.contains_key(&name) {
            return;
        }
        if let Some(task) = resumed.task.clone() {
            state.resumed.insert(task, name.clone());
        }
        state.places.insert(name.clone(), resumed.place.clone());
        state.left.insert(name.clone(), resumed.left.clone());
        state
            .calls
            .insert(name, Seat::Resuming(resumed.call.clone()));
    }

    /// What is stored to find a call again.
    pub(super) fn place(&self, call: &CallContext) -> Arc<CallPlace> {
        let mut state = self.0.lock();
        state.places.entry(name_of(call)).or_default().clone()
    }

    /// An input request of a call that a previous run has put under a key of this sort. It is returned once.
    pub(super) fn take_left(
        &self,
        call: TaskId,
        sort: impl Fn(&InputKey) -> bool,
    ) -> Option<LeftRequest> {
        let mut state = self.0.lock();
        let left = state.left.get_mut(call.text().as_str())?;
        let at = left.iter().position(|left| sort(&left.key))?;
        Some(left.remove(at))
    }

    /// Every input request that a previous run has put for a call and that the upstream has not sent again, without those that
    /// it sent in its session: they are open until the upstream cancels them. FastMCP 3 reports `working` meanwhile.
    pub(super) fn take_unclaimed(&self, call: TaskId) -> Vec<InputKey> {
        let mut state = self.0.lock();
        let Some(left) = state.left.get_mut(call.text().as_str()) else {
            return Vec::new();
        };
        let unclaimed = left.extract_if(.., |left| left.answer.is_none());
        unclaimed.map(|left| left.key).collect()
    }

    fn insert(&self, name: Arc<str>, seat: Seat) {
        self.0.lock().calls.insert(name, seat);
    }
}

impl State {
    /// Forgets a call.
    fn forget(&mut self, name: &Arc<str>) {
        self.calls.remove(name);
        self.left.remove(name);
        self.places.remove(name);
        self.resumed.retain(|_, call| call != name);
    }

    /// Forgets calls that were cancelled before they had the connection.
    fn forget_cancelled(&mut self) {
        let cancelled = |seat: &Seat| matches!(seat, Seat::Resuming(cx) if cx.is_cancelled());
        let names = self.calls.iter().filter(|(_, seat)| cancelled(seat));
        let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.forget(&name);
        }
    }
}

/// Why something belongs to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    None,
    Several,
}

impl Seat {
    /// Whether its caller wants it to stop.
    fn is_cancelled(&self) -> bool {
        self.taken().is_some_and(|cx| cx.is_cancelled())
    }

    /// The call, if it is known whose it is.
    pub(super) fn taken(&self) -> Option<CallContext> {
        match self {
            Self::Taken(cx) | Self::Resuming(cx) => Some(cx.clone()),
            Self::Kept(told) => told.borrow().clone(),
        }
    }

    /// The call, once it is known whose it is; `None` if it is given up before.
    pub(super) async fn whose(self) -> Option<CallContext> {
        match self {
            Self::Taken(cx) | Self::Resuming(cx) => Some(cx),
            Self::Kept(mut told) => told.wait_for(Option::is_some).await.ok()?.clone(),
        }
    }
}

impl UnderWay {
    /// A call is under way on `connection`.
    pub(super) fn begin(connection: Arc<Connection>, cx: &CallContext) -> Self {
        let name = name_of(cx);
        let calls = &connection.shared.calls;
        calls.insert(name.clone(), Seat::Taken(cx.clone()));
        Self {
            connection,
            name,
            kept: None,
        }
    }

    /// The same for a call of which is not known yet whose it is: its questions wait until it is.
    pub(super) fn reserve(connection: Arc<Connection>) -> Self {
        let name: Arc<str> = random::token::<16>().into();
        let (tell, told) = watch::channel(None);
        let calls = &connection.shared.calls;
        calls.insert(name.clone(), Seat::Kept(told));
        Self {
            connection,
            name,
            kept: Some(tell),
        }
    }

    /// The name under which its questions find it.
    pub(super) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Tells whose it is, once that is known.
    pub(super) fn whose(&self) -> Option<watch::Receiver<Option<CallContext>>> {
        self.kept.as_ref().map(watch::Sender::subscribe)
    }

    /// Says whose it is.
    pub(super) fn belongs_to(&self, cx: &CallContext) {
        if let Some(kept) = &self.kept {
            kept.send_replace(Some(cx.clone()));
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let call = self.kept.as_ref().and_then(|kept| {
            let call = kept.borrow();
            call.as_ref().map(name_of)
        });
        let shared = &self.connection.shared;
        {
            let mut state = shared.calls.0.lock();
            state.forget(&self.name);
            state.forget(call.as_ref().unwrap_or(&self.name));
        }
        shared.mark_used();
    }
}

/// The name that the questions of a call carry.
fn name_of(call: &CallContext) -> Arc<str> {
    call.id().text().as_str().into()
}
