//! Whether the store can be written, computed from what each of its parts says of itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_engine::store::{Health, Reason};
use tokio::sync::watch;

use super::fault::Fault;

/// What the parts of a store say of themselves, and what follows for those who use it.
#[derive(Debug)]
pub(super) struct Condition {
    parts: Mutex<Parts>,
    health: watch::Sender<Health>,
}

#[derive(Debug, Default)]
struct Parts {
    closed: bool,
    /// Why nothing can be promised.
    ledger: Option<Fault>,
    /// Why the tables do not follow.
    tables: Option<Fault>,
    /// Why new tasks are refused.
    room: Option<Reason>,
}

impl Condition {
    pub(super) fn new() -> Self {
        Self {
            parts: Mutex::default(),
            health: watch::Sender::new(Health::Ready),
        }
    }

    /// Whether the store can be used, and news of it.
    pub(super) fn health(&self) -> &watch::Sender<Health> {
        &self.health
    }

    /// Says why nothing can be promised, or that something can.
    pub(super) fn ledger(&self, fault: Option<Fault>) {
        self.change(|parts| parts.ledger = fault);
    }

    /// Says why the tables do not follow, or that they do.
    pub(super) fn tables(&self, fault: Option<Fault>) {
        self.change(|parts| parts.tables = fault);
    }

    /// Says why new tasks are refused, or that they are not.
    pub(super) fn room(&self, reason: Option<Reason>) {
        self.change(|parts| parts.room = reason);
    }

    /// Says that it is over.
    pub(super) fn close(&self) {
        self.change(|parts| parts.closed = true);
    }

    /// Why the tables do not follow.
    pub(super) fn tables_fault(&self) -> Option<Fault> {
        self.parts().tables.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.parts();
        change(&mut parts);
        let health = parts.health();
        // While the parts are locked, so that the last word is the right one.
        self.health.send_if_modified(|now| {
            let changed = *now != health;
            *now = health;
            changed
        });
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // Nothing in a critical section panics.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    fn health(&self) -> Health {
        match (&self.ledger, &self.tables, &self.room) {
            _ if self.closed => Health::Closed,
            (Some(fault), _, _) => Health::Down(fault.reason()),
            (None, Some(fault), _) if fault.is_down() => Health::Down(fault.reason()),
            (None, Some(full @ Fault::Full(_)), None) => Health::NoRoom(full.reason()),
            (None, _, Some(reason)) => Health::NoRoom(reason.clone()),
            (None, _, None) => Health::Ready,
        }
    }
}
