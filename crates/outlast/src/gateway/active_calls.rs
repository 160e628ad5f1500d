//! The active calls of one connection to an upstream. Input requests and log messages that arrive
//! on the connection are assigned to one of them. The input requests that a previous run of this
//! process had sent to its clients are kept here, too.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::engine::CallContext;
use outlast_engine::{InputKey, InputResponse, TaskId, random};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::connection::UpstreamConnection;
use super::reattach::CallRecord;
use crate::client::Era;
use crate::transport::http_client::SavedSession;

/// The active calls of one connection.
#[derive(Default)]
pub(super) struct ActiveCalls(Mutex<State>);

#[derive(Default)]
struct State {
    /// The active calls, by the name that their input requests carry.
    calls: HashMap<Arc<str>, CallSlot>,
    /// Input requests of these calls that a previous run of this process sent to its clients, and
    /// that the upstream has not sent again.
    recovered: HashMap<Arc<str>, Vec<RecoveredRequest>>,
    /// What is stored to resume these calls.
    records: HashMap<Arc<str>, Arc<CallRecord>>,
    /// The calls that resume these tasks of the upstream after a restart.
    resumed: HashMap<String, Arc<str>>,
}

/// An entry for an active call.
#[derive(Clone)]
pub(super) enum CallSlot {
    Bound(CallContext),
    /// A call of a previous run of this process that waits for the connection.
    Resuming(CallContext),
    /// A call that runs at the upstream and has no task yet.
    Reserved(watch::Receiver<Option<CallContext>>),
}

/// A call of a previous run of this process. Its input requests are not sent to the client twice.
#[derive(Clone)]
pub(super) struct ResumedCall {
    pub(super) call: CallContext,
    /// The upstream's task.
    pub(super) task: Option<String>,
    /// Its stored state.
    pub(super) record: Arc<CallRecord>,
    /// Its open input requests.
    pub(super) recovered: Vec<RecoveredRequest>,
    /// Its session, if the upstream has sessions.
    pub(super) session: Option<SavedSession>,
    /// The era of its connection.
    pub(super) era: Era,
}

/// An input request that a previous run of this process sent to its client.
#[derive(Clone)]
pub(super) struct RecoveredRequest {
    pub(super) key: InputKey,
    /// The response, if something waits for it already. If there is no response, the channel
    /// closes.
    pub(super) response: Option<watch::Receiver<Option<InputResponse>>>,
}

impl ResumedCall {
    /// Whether `other` is the same call.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        self.call.id() == other.call.id()
    }
}

/// Registers a call on its connection until it is dropped.
pub(super) struct ActiveCall {
    connection: Arc<UpstreamConnection>,
    name: Arc<str>,
    /// Sends the context of the call, if the call was registered without one.
    binding: Option<watch::Sender<Option<CallContext>>>,
}

impl ActiveCalls {
    /// Whether no call is active.
    pub(super) fn is_empty(&self) -> bool {
        let mut state = self.0.lock();
        state.forget_cancelled();
        state.calls.is_empty()
    }

    /// The call of that name, else the call that resumes this task of the upstream, else the only
    /// call.
    pub(super) fn find(
        &self,
        name: Option<&str>,
        task: Option<&str>,
    ) -> Result<CallSlot, CallLookupError> {
        let mut state = self.0.lock();
        state.forget_cancelled();
        let resumed = task.and_then(|task| state.resumed.get(task)).cloned();
        let name = name.or(resumed.as_deref());
        if let Some(call) = name.and_then(|name| state.calls.get(name)) {
            return Ok(call.clone());
        }
        // A cancelled call stays registered during its cleanup.
        let (live, cancelled): (Vec<_>, Vec<_>) =
            state.calls.values().partition(|call| !call.is_cancelled());
        match (&live[..], &cancelled[..]) {
            ([call], _) | ([], [call]) => Ok((*call).clone()),
            ([], []) => Err(CallLookupError::NoCall),
            _ => Err(CallLookupError::SeveralCalls),
        }
    }

    /// Registers a call of a previous run of this process, unless it is registered.
    pub(super) fn resume(&self, resumed: &ResumedCall) {
        let name = name_of(&resumed.call);
        let mut state = self.0.lock();
        if state.calls.contains_key(&name) {
            return;
        }
        if let Some(task) = resumed.task.clone() {
            state.resumed.insert(task, name.clone());
        }
        state.records.insert(name.clone(), resumed.record.clone());
        state
            .recovered
            .insert(name.clone(), resumed.recovered.clone());
        state
            .calls
            .insert(name, CallSlot::Resuming(resumed.call.clone()));
    }

    /// The stored state of a call.
    pub(super) fn record(&self, call: &CallContext) -> Arc<CallRecord> {
        let mut state = self.0.lock();
        state.records.entry(name_of(call)).or_default().clone()
    }

    /// Takes an input request of a previous run whose key matches.
    pub(super) fn take_recovered(
        &self,
        call: TaskId,
        has_prefix: impl Fn(&InputKey) -> bool,
    ) -> Option<RecoveredRequest> {
        let mut state = self.0.lock();
        let recovered = state.recovered.get_mut(call.text().as_str())?;
        let at = recovered
            .iter()
            .position(|recovered| has_prefix(&recovered.key))?;
        Some(recovered.remove(at))
    }

    /// Takes the keys of all input requests of a previous run that the upstream has not sent again.
    /// Requests that it sent in its session stay open until the upstream cancels them: FastMCP 3
    /// reports `working` meanwhile.
    pub(super) fn take_unclaimed(&self, call: TaskId) -> Vec<InputKey> {
        let mut state = self.0.lock();
        let Some(recovered) = state.recovered.get_mut(call.text().as_str()) else {
            return Vec::new();
        };
        let unclaimed = recovered.extract_if(.., |recovered| recovered.response.is_none());
        unclaimed.map(|recovered| recovered.key).collect()
    }

    fn insert(&self, name: Arc<str>, slot: CallSlot) {
        self.0.lock().calls.insert(name, slot);
    }
}

impl State {
    /// Removes a call.
    fn forget(&mut self, name: &Arc<str>) {
        self.calls.remove(name);
        self.recovered.remove(name);
        self.records.remove(name);
        self.resumed.retain(|_, call| call != name);
    }

    /// Removes calls that were cancelled before they had the connection.
    fn forget_cancelled(&mut self) {
        let cancelled =
            |slot: &CallSlot| matches!(slot, CallSlot::Resuming(cx) if cx.is_cancelled());
        let names = self.calls.iter().filter(|(_, slot)| cancelled(slot));
        let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.forget(&name);
        }
    }
}

/// Why a message cannot be assigned to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallLookupError {
    NoCall,
    SeveralCalls,
}

impl CallSlot {
    /// Whether its caller has cancelled it.
    fn is_cancelled(&self) -> bool {
        self.context().is_some_and(|cx| cx.is_cancelled())
    }

    /// The context of the call, if it exists.
    pub(super) fn context(&self) -> Option<CallContext> {
        match self {
            Self::Bound(cx) | Self::Resuming(cx) => Some(cx.clone()),
            Self::Reserved(bound) => bound.borrow().clone(),
        }
    }

    /// Waits for the context of the call; `None` if the call is dropped before.
    pub(super) async fn bound(self) -> Option<CallContext> {
        match self {
            Self::Bound(cx) | Self::Resuming(cx) => Some(cx),
            Self::Reserved(mut bound) => bound.wait_for(Option::is_some).await.ok()?.clone(),
        }
    }
}

impl ActiveCall {
    /// Registers a call on `connection`.
    pub(super) fn begin(connection: Arc<UpstreamConnection>, cx: &CallContext) -> Self {
        let name = name_of(cx);
        let calls = &connection.shared.calls;
        calls.insert(name.clone(), CallSlot::Bound(cx.clone()));
        Self {
            connection,
            name,
            binding: None,
        }
    }

    /// Registers a call whose task does not exist yet. Its input requests wait until
    /// [`Self::bind`] is called.
    pub(super) fn reserve(connection: Arc<UpstreamConnection>) -> Self {
        let name: Arc<str> = random::token::<16>().into();
        let (sender, bound) = watch::channel(None);
        let calls = &connection.shared.calls;
        calls.insert(name.clone(), CallSlot::Reserved(bound));
        Self {
            connection,
            name,
            binding: Some(sender),
        }
    }

    /// The name that its input requests carry.
    pub(super) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Receives the context of the call, if it was registered without one.
    pub(super) fn binding(&self) -> Option<watch::Receiver<Option<CallContext>>> {
        self.binding.as_ref().map(watch::Sender::subscribe)
    }

    /// Sets the context of a call that was registered without one.
    pub(super) fn bind(&self, cx: &CallContext) {
        if let Some(binding) = &self.binding {
            binding.send_replace(Some(cx.clone()));
        }
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let call = self.binding.as_ref().and_then(|binding| {
            let call = binding.borrow();
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

/// The name that the input requests of a call carry.
fn name_of(call: &CallContext) -> Arc<str> {
    call.id().text().as_str().into()
}
