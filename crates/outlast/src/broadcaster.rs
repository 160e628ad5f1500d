//! The servers that serve a backend. Changes are announced to their clients.

use std::sync::{Arc, Weak};

use outlast_engine::Owner;
use parking_lot::{Mutex, MutexGuard};

use crate::server::{ListChange, McpServer};

#[derive(Default)]
pub(crate) struct Broadcaster(Mutex<Vec<Weak<McpServer>>>);

impl Broadcaster {
    pub(crate) fn add(&self, server: &Weak<McpServer>) {
        self.lock().push(server.clone());
    }

    pub(crate) fn announce(&self, change: &ListChange) {
        for server in self.all() {
            server.announce(change.clone());
        }
    }

    /// Announces a change to the clients of one owner.
    pub(crate) fn announce_to(&self, owner: &Owner, change: &ListChange) {
        for server in self.all() {
            server.announce_to(owner, change.clone());
        }
    }

    fn all(&self) -> Vec<Arc<McpServer>> {
        let mut servers = self.lock();
        servers.retain(|server| server.strong_count() > 0);
        servers.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<McpServer>>> {
        self.0.lock()
    }
}
