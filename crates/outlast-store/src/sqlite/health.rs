//! Whether the store can be written, computed from the conditions that hold.

use outlast_engine::store::{Health, Reason};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The conditions that stop writes, and the [`Health`] computed from them.
#[derive(Debug)]
pub(super) struct HealthState {
    conditions: Mutex<Conditions>,
    health: watch::Sender<Health>,
}

#[derive(Debug, Default)]
struct Conditions {
    closed: bool,
    /// Why nothing can be written.
    down: Option<Reason>,
    /// Why new tasks are refused.
    no_space: Option<Reason>,
}

impl HealthState {
    pub(super) fn new() -> Self {
        Self {
            conditions: Mutex::default(),
            health: watch::Sender::new(Health::Ready),
        }
    }

    /// The computed health, for subscribers.
    pub(super) fn watch(&self) -> &watch::Sender<Health> {
        &self.health
    }

    /// Sets or clears the reason why nothing can be written.
    pub(super) fn set_down(&self, reason: Option<Reason>) {
        self.change(|conditions| conditions.down = reason);
    }

    /// Sets or clears the reason why new tasks are refused.
    pub(super) fn set_no_space(&self, reason: Option<Reason>) {
        self.change(|conditions| conditions.no_space = reason);
    }

    /// Marks the store as closed.
    pub(super) fn close(&self) {
        self.change(|conditions| conditions.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Conditions)) {
        let mut conditions = self.conditions();
        change(&mut conditions);
        let health = conditions.health();
        // Sent under the lock, so that the last value sent is the last one computed.
        self.health.send_if_modified(|now| {
            let changed = *now != health;
            *now = health;
            changed
        });
    }

    fn conditions(&self) -> MutexGuard<'_, Conditions> {
        self.conditions.lock()
    }
}

impl Conditions {
    fn health(&self) -> Health {
        match (&self.down, &self.no_space) {
            _ if self.closed => Health::Closed,
            (Some(reason), _) => Health::Down(reason.clone()),
            (None, Some(reason)) => Health::NoSpace(reason.clone()),
            (None, None) => Health::Ready,
        }
    }
}
