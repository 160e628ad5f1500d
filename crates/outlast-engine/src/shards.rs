//! A large map in parts with a lock each, so that those who look for different tasks do not wait for each other.

use crossbeam_utils::CachePadded;

use crate::id::TaskId;
use crate::runtime::{Mutex, MutexGuard, shards};

/// Parts of something, by the id of a task. On the door of each hangs a sign `S`.
#[derive(Debug)]
pub(crate) struct Shards<T, S = ()>(Box<[CachePadded<Part<T, S>>]>);

#[derive(Debug, Default)]
struct Part<T, S> {
    inside: Mutex<T>,
    sign: S,
}

impl<T: Default, S: Default> Default for Shards<T, S> {
    fn default() -> Self {
        Self((0..shards()).map(|_| CachePadded::default()).collect())
    }
}

impl<T, S> Shards<T, S> {
    /// The part that a task belongs to. Critical sections are a few operations on it that do not panic.
    pub(crate) fn of(&self, id: TaskId) -> MutexGuard<'_, T> {
        self.part(id).lock()
    }

    /// What can be read of that part without its lock.
    pub(crate) fn sign(&self, id: TaskId) -> &S {
        &self.part(id).sign
    }

    /// All parts, one after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|part| part.lock())
    }

    /// All parts with their signs, one after the other.
    pub(crate) fn each_signed(&self) -> impl Iterator<Item = (MutexGuard<'_, T>, &S)> {
        self.0.iter().map(|part| (part.lock(), &part.sign))
    }

    fn part(&self, id: TaskId) -> &Part<T, S> {
        // Tables inside a part use the other half of the bits. The number of parts is a power of two.
        let [_, low] = id.halves();
        &self.0[low as usize & (self.0.len() - 1)]
    }
}

impl<T, S> Part<T, S> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.inside.lock()
    }
}
