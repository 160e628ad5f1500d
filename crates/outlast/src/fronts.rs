//! The servers that serve a backend. Changes are announced to their clients.

use std::sync::{Arc, Weak};

use outlast_engine::Owner;
use parking_lot::{Mutex, MutexGuard};

use crate::server::{ListChange, McpServer};

#[derive(Default)]
pub(crate) struct Fronts(Mutex<Vec<Weak<McpServer>>>);

impl Fronts {
    pub(crate) fn add(&self, front: &Weak<McpServer>) {
        self.lock().push(front.clone());
    }

    pub(crate) fn announce(&self, change: &ListChange) {
        for front in self.all() {
            front.announce(change.clone());
        }
    }

    /// Announces a change to the clients of one owner.
    pub(crate) fn announce_to(&self, owner: &Owner, change: &ListChange) {
        for front in self.all() {
            front.announce_to(owner, change.clone());
        }
    }

    fn all(&self) -> Vec<Arc<McpServer>> {
        let mut fronts = self.lock();
        fronts.retain(|front| front.strong_count() > 0);
        fronts.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<McpServer>>> {
        self.0.lock()
    }
}
