//! The fronts that something stands behind: through them clients are told what changed.

use std::sync::{Arc, Weak};

use outlast_engine::Owner;
use parking_lot::{Mutex, MutexGuard};

use crate::server::{Change, Front};

#[derive(Default)]
pub(crate) struct Fronts(Mutex<Vec<Weak<Front>>>);

impl Fronts {
    pub(crate) fn add(&self, front: &Weak<Front>) {
        self.lock().push(front.clone());
    }

    pub(crate) fn announce(&self, change: &Change) {
        for front in self.all() {
            front.announce(change.clone());
        }
    }

    /// Tells the clients of one owner.
    pub(crate) fn announce_to(&self, owner: &Owner, change: &Change) {
        for front in self.all() {
            front.announce_to(owner, change.clone());
        }
    }

    fn all(&self) -> Vec<Arc<Front>> {
        let mut fronts = self.lock();
        fronts.retain(|front| front.strong_count() > 0);
        fronts.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Front>>> {
        self.0.lock()
    }
}
