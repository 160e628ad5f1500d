//! A large map in parts with a lock each, so that those who look for different tasks do not wait for each other.

use std::sync::PoisonError;

use crate::id::TaskId;
use crate::runtime::{Apart, Mutex, MutexGuard, shards};

/// Parts of something, by the id of a task.
#[derive(Debug)]
pub(crate) struct Shards<T>(Box<[Apart<Mutex<T>>]>);

impl<T: Default> Default for Shards<T> {
    fn default() -> Self {
        Self((0..shards()).map(|_| Apart::default()).collect())
    }
}

impl<T> Shards<T> {
    /// The part that a task belongs to. Critical sections are a few operations on it that do not panic.
    pub(crate) fn of(&self, id: TaskId) -> MutexGuard<'_, T> {
        // Tables inside a part use the other half of the bits. The number of parts is a power of two.
        let [_, low] = id.halves();
        lock(&self.0[low as usize & (self.0.len() - 1)])
    }

    /// All parts, one after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|part| lock(part))
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
