//! Bodies that were written or read of late: most results are fetched right after they are made.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_wire::Raw;

use super::row::RowId;
use super::spread::SpreadMap;

/// A bounded memory of bodies; the oldest are forgotten. A row holds one body for ever, so an entry is
/// never out of date: whoever asks knows from the index that the row is the task's.
#[derive(Debug)]
pub(super) struct Recent {
    kept: Mutex<Kept>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: SpreadMap<RowId, Raw>,
    order: VecDeque<RowId>,
    bytes: usize,
}

impl Recent {
    /// A memory of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Mutex::default(),
            limit,
        }
    }

    pub(super) fn get(&self, row: RowId) -> Option<Raw> {
        self.kept().bodies.get(&row).cloned()
    }

    /// Remembers bodies, but for those that would drive out most others.
    pub(super) fn keep(&self, bodies: impl IntoIterator<Item = (RowId, Raw)>) {
        let mut kept = self.kept();
        for (row, body) in bodies {
            if body.size() > self.limit / 16 {
                continue;
            }
            kept.bytes += cost(&body);
            match kept.bodies.insert(row, body) {
                Some(known) => kept.bytes -= cost(&known),
                None => kept.order.push_back(row),
            }
        }
        while kept.bytes > self.limit
            && let Some(oldest) = kept.order.pop_front()
        {
            if let Some(body) = kept.bodies.remove(&oldest) {
                kept.bytes -= cost(&body);
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in a critical section panics.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a body costs with its places in the tables, in bytes.
fn cost(body: &Raw) -> usize {
    body.size() + 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bodies_are_kept_within_the_limit() {
        let recent = Recent::new(16 << 10);
        let body = |n: i64| Raw::parse(format!("\"{n:0500}\"")).unwrap();
        for n in 0..1_000 {
            recent.keep([(RowId(n), body(n)), (RowId(n), body(n))]);
        }
        assert_eq!(recent.get(RowId(999)), Some(body(999)));
        assert_eq!(recent.get(RowId(0)), None);
        let kept = recent.kept();
        assert!(kept.bytes <= 16 << 10 && kept.bodies.len() > 20);
        assert_eq!(kept.bodies.len(), kept.order.len());
    }

    #[test]
    fn a_large_body_drives_out_nothing() {
        let recent = Recent::new(16 << 10);
        let large = Raw::parse(format!("\"{}\"", "x".repeat(2_000))).unwrap();
        recent.keep([(RowId(1), large)]);
        assert_eq!(recent.get(RowId(1)), None);
    }
}
