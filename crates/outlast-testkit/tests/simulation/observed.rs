//! A value whose changes wake all waiters in the order in which they came. (Tokio's `watch` wakes them
//! in a random order.)

use std::sync::Mutex;

use tokio::sync::Notify;

pub(crate) struct Observed<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Observed<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Notify::new(),
        }
    }

    pub(crate) fn get(&self) -> T {
        *self.value.lock().expect("no test panics here")
    }

    pub(crate) fn set(&self, value: T) {
        *self.value.lock().expect("no test panics here") = value;
        self.changed.notify_waiters();
    }

    /// Waits until the value passes the test, and returns it.
    pub(crate) async fn wait_for(&self, test: impl Fn(T) -> bool) -> T {
        loop {
            let changed = self.changed.notified();
            let value = self.get();
            if test(value) {
                return value;
            }
            changed.await;
        }
    }
}
