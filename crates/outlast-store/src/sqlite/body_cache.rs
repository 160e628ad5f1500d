//! A bounded cache of bodies: most results are fetched right after the task ends.

use std::collections::{HashMap, VecDeque};

use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};

use super::row::RowId;

/// A cache of bodies by row, which drops the oldest. The body of a row never changes, so an entry
/// is never stale: the caller knows from the index that the row belongs to the task.
#[derive(Debug)]
pub(super) struct BodyCache {
    entries: Mutex<Entries>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Entries {
    bodies: HashMap<RowId, Raw>,
    order: VecDeque<RowId>,
    bytes: usize,
}

impl BodyCache {
    /// Creates a cache of at most `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            entries: Mutex::default(),
            max_bytes,
        }
    }

    pub(super) fn get(&self, row: RowId) -> Option<Raw> {
        self.entries().bodies.get(&row).cloned()
    }

    /// Adds bodies, except those that would replace most other entries.
    pub(super) fn add(&self, bodies: impl IntoIterator<Item = (RowId, Raw)>) {
        let mut entries = self.entries();
        for (row, body) in bodies {
            if body.size() > self.max_bytes / 16 {
                continue;
            }
            entries.bytes += cost_bytes(&body);
            match entries.bodies.insert(row, body) {
                Some(known) => entries.bytes -= cost_bytes(&known),
                None => entries.order.push_back(row),
            }
        }
        while entries.bytes > self.max_bytes
            && let Some(oldest) = entries.order.pop_front()
        {
            if let Some(body) = entries.bodies.remove(&oldest) {
                entries.bytes -= cost_bytes(&body);
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }
}

/// The size of a body and of its entries in the maps.
fn cost_bytes(body: &Raw) -> usize {
    body.size() + 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bodies_are_cached_within_the_limit() {
        let cache = BodyCache::new(16 << 10);
        let body = |n: i64| Raw::parse(format!("\"{n:0500}\"")).unwrap();
        for n in 0..1_000 {
            cache.add([(RowId(n), body(n)), (RowId(n), body(n))]);
        }
        assert_eq!(cache.get(RowId(999)), Some(body(999)));
        assert_eq!(cache.get(RowId(0)), None);
        let entries = cache.entries();
        assert!(entries.bytes <= 16 << 10 && entries.bodies.len() > 20);
        assert_eq!(entries.bodies.len(), entries.order.len());
    }

    #[test]
    fn a_large_body_replaces_nothing() {
        let cache = BodyCache::new(16 << 10);
        let large = Raw::parse(format!("\"{}\"", "x".repeat(2_000))).unwrap();
        cache.add([(RowId(1), large)]);
        assert_eq!(cache.get(RowId(1)), None);
    }
}
