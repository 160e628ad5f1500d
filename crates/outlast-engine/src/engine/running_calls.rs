//! The calls that run in this process, by id.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use super::call_state::CallState;
use crate::id::{Attempt, IdMap, TaskId};
use crate::runtime::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::shards::Shards;

#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    shards: Shards<IdMap<Arc<CallState>>>,
    running: CachePadded<AtomicUsize>,
    idle: Notify,
    /// Whether a caller has ever waited for that. Before a shutdown, the last call notifies
    /// nothing.
    waited_for: AtomicBool,
}

impl RunningCalls {
    /// Registers a call. An earlier attempt of the same task is superseded and aborted.
    pub(crate) fn add(&self, call_state: Arc<CallState>) {
        // Sequentially consistent with the phase of the engine: either the shutdown finds this
        // call, or the call finds the shutdown.
        self.running.fetch_add(1, Ordering::SeqCst);
        if let Some(earlier) = self
            .shards
            .lock(call_state.id)
            .insert(call_state.id, call_state)
        {
            earlier.abort();
            self.removed();
        }
    }

    pub(crate) fn find(&self, id: TaskId) -> Option<Arc<CallState>> {
        self.shards.lock(id).get(&id).cloned()
    }

    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.shards.lock(id).contains_key(&id)
    }

    /// The ids of the running calls.
    pub(crate) fn ids(&self) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for shard in self.shards.lock_each() {
            ids.extend(shard.keys());
        }
        ids
    }

    /// Removes a call if it is still the given attempt.
    pub(crate) fn take(&self, id: TaskId, attempt: Attempt) -> Option<Arc<CallState>> {
        let mut shard = self.shards.lock(id);
        let call_state = match shard.entry(id) {
            Entry::Occupied(entry) if entry.get().attempt == attempt => entry.remove(),
            Entry::Occupied(_) | Entry::Vacant(_) => return None,
        };
        drop(shard);
        self.removed();
        Some(call_state)
    }

    /// Removes a call, whichever attempt it is.
    pub(crate) fn remove(&self, id: TaskId) -> Option<Arc<CallState>> {
        let call_state = self.shards.lock(id).remove(&id)?;
        self.removed();
        Some(call_state)
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Resolves when no call runs.
    pub(crate) async fn wait_until_idle(&self) {
        // Set before the check, so that a call that ends after it notifies.
        self.waited_for.store(true, Ordering::SeqCst);
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Removes every call.
    pub(crate) fn take_all(&self) -> Vec<Arc<CallState>> {
        let mut all = Vec::new();
        for mut shard in self.shards.lock_each() {
            all.extend(shard.drain().map(|(_, call_state)| call_state));
        }
        for _ in &all {
            self.removed();
        }
        all
    }

    fn removed(&self) {
        let last = self.running.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.waited_for.load(Ordering::SeqCst) {
            self.idle.notify_waiters();
        }
    }
}
