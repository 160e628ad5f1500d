//! Ids of requests and progress tokens.
//!
//! A session at a server can outlive this process, and two programs can use one session at the same
//! time. An id must not be reused within a session (V1-BASE-2), so each client draws a random
//! prefix and counts.

use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::random;
use outlast_wire::envelope::Id;

/// Generates ids that no other client generates.
#[derive(Debug)]
pub(crate) struct RequestIds {
    prefix: String,
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self {
            prefix: random::token::<PREFIX_BYTES>(),
            count: AtomicU64::new(0),
        }
    }
}

impl RequestIds {
    /// A new id.
    pub(crate) fn fresh(&self) -> Id {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        Id::text(&format!("{}-{count}", self.prefix))
    }

    /// How many ids were generated.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// The length of the random prefix that distinguishes the clients of one session.
const PREFIX_BYTES: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_never_generate_the_same_id() {
        // V1-BASE-2, V1-PRG-1.
        let (one, two) = (RequestIds::default(), RequestIds::default());
        let ids = [one.fresh(), one.fresh(), two.fresh(), two.fresh()];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(one.count(), 2);
    }
}
