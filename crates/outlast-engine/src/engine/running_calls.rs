//! The calls that run in this process, by id.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use super::call_state::Cell;
use crate::id::{Attempt, IdMap, TaskId};
use crate::runtime::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::shards::Shards;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    shards: Shards<IdMap<Arc<Cell>>>,
    running: CachePadded<AtomicUsize>,
    idle: Notify,
    /// Whether anybody has ever waited for that: until an engine shuts down, the last call to leave rings no bell.
    awaited: AtomicBool,
}

impl Calls {
    /// Registers a call. An earlier attempt of the same task is superseded and told to stop.
    pub(crate) fn add(&self, cell: Arc<Cell>) {
        // In one order with the phase of the engine: either the shutdown sees this call, or the call sees the shutdown.
        self.running.fetch_add(1, Ordering::SeqCst);
        if let Some(earlier) = self.shards.of(cell.id).insert(cell.id, cell) {
            earlier.call_off();
            self.left();
        }
    }

    pub(crate) fn find(&self, id: TaskId) -> Option<Arc<Cell>> {
        self.shards.of(id).get(&id).cloned()
    }

    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.shards.of(id).contains_key(&id)
    }

    /// The calls that run here.
    pub(crate) fn ids(&self) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for shard in self.shards.each() {
            ids.extend(shard.keys());
        }
        ids
    }

    /// Takes a call out, if it is still the given attempt.
    pub(crate) fn take(&self, id: TaskId, attempt: Attempt) -> Option<Arc<Cell>> {
        let mut shard = self.shards.of(id);
        let cell = match shard.entry(id) {
            Entry::Occupied(entry) if entry.get().attempt == attempt => entry.remove(),
            Entry::Occupied(_) | Entry::Vacant(_) => return None,
        };
        drop(shard);
        self.left();
        Some(cell)
    }

    /// Takes a call out, whichever attempt it is.
    pub(crate) fn remove(&self, id: TaskId) -> Option<Arc<Cell>> {
        let cell = self.shards.of(id).remove(&id)?;
        self.left();
        Some(cell)
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Resolves when nothing runs.
    pub(crate) async fn all_done(&self) {
        // Before the look: whoever leaves after it rings.
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Takes every call out.
    pub(crate) fn take_all(&self) -> Vec<Arc<Cell>> {
        let mut all = Vec::new();
        for mut shard in self.shards.each() {
            all.extend(shard.drain().map(|(_, cell)| cell));
        }
        for _ in &all {
            self.left();
        }
        all
    }

    fn left(&self) {
        let last = self.running.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.awaited.load(Ordering::SeqCst) {
            self.idle.notify_waiters();
        }
    }
}
