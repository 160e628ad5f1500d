//! A map divided into shards with a lock each, so that accesses to different tasks seldom contend.

use crossbeam_utils::CachePadded;

use crate::id::TaskId;
use crate::runtime::{Mutex, MutexGuard, shards};

/// Shards selected by task id. `S` is metadata of a shard that is readable without its lock.
#[derive(Debug)]
pub(crate) struct Shards<T, S = ()>(Box<[CachePadded<Shard<T, S>>]>);

#[derive(Debug, Default)]
struct Shard<T, S> {
    value: Mutex<T>,
    meta: S,
}

impl<T: Default, S: Default> Default for Shards<T, S> {
    fn default() -> Self {
        Self((0..shards()).map(|_| CachePadded::default()).collect())
    }
}

impl<T, S> Shards<T, S> {
    /// Locks the shard of a task. Critical sections are a few operations that do not panic.
    pub(crate) fn lock(&self, id: TaskId) -> MutexGuard<'_, T> {
        self.shard(id).lock()
    }

    /// The metadata of the shard of a task, without its lock.
    pub(crate) fn meta(&self, id: TaskId) -> &S {
        &self.shard(id).meta
    }

    /// Locks all shards, one after the other.
    pub(crate) fn lock_each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|shard| shard.lock())
    }

    /// Locks all shards, one after the other, and returns each with its metadata.
    pub(crate) fn lock_each_with_meta(&self) -> impl Iterator<Item = (MutexGuard<'_, T>, &S)> {
        self.0.iter().map(|shard| (shard.lock(), &shard.meta))
    }

    fn shard(&self, id: TaskId) -> &Shard<T, S> {
        // Hash tables inside a shard use the other half of the bits. The number of shards is a
        // power of two.
        let [_, low] = id.halves();
        &self.0[low as usize & (self.0.len() - 1)]
    }
}

impl<T, S> Shard<T, S> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }
}
