//! What a store knows about the renewals of its leases: until when its nodes may act, and when it may
//! mark other nodes as lost.
//!
//! While the database does not answer, no node can renew its lease. So a node marks others as lost only
//! after it has renewed its own lease without a pause for the time of a lease.

use std::time::{Duration, Instant};

/// The renewals of the leases of one store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Renewals {
    /// Since when they succeed without a pause.
    since: Option<Instant>,
    /// The last one that succeeded.
    last: Option<Instant>,
}

impl Renewals {
    /// The database confirmed a renewal at `now`.
    pub fn succeeded(&mut self, now: Instant) {
        // The database, or this process, may have stood still although no statement failed.
        if self
            .last
            .is_some_and(|last| now.duration_since(last) > MAX_PAUSE)
        {
            self.since = None;
        }
        self.since.get_or_insert(now);
        self.last = Some(now);
    }

    /// A renewal failed, or there is nothing to renew.
    pub fn failed(&mut self) {
        *self = Self::default();
    }

    /// Whether every node had the time to renew its lease.
    pub fn may_mark_lost(&self, now: Instant) -> bool {
        self.since
            .is_some_and(|since| now.duration_since(since) >= LEASE)
    }
}

/// How long a node is joined after its last renewal.
pub const LEASE: Duration = Duration::from_secs(10);

/// The time between two renewals.
pub const HEARTBEAT: Duration = Duration::from_secs(3);

/// How long after the start of its last successful renewal a node writes: the lease minus a margin for
/// the difference between clocks.
pub const TRUST_WINDOW: Duration = Duration::from_secs(9);

/// The longest time between two renewals without a pause.
const MAX_PAUSE: Duration = Duration::from_secs(6);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_marked_after_a_lease_without_a_pause() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut renewals = Renewals::default();
        assert!(!renewals.may_mark_lost(at(100)));
        for seconds in [0, 3, 6, 9] {
            renewals.succeeded(at(seconds));
            assert!(!renewals.may_mark_lost(at(seconds)), "after {seconds} s");
        }
        renewals.succeeded(at(12));
        assert!(renewals.may_mark_lost(at(12)));
    }

    #[test]
    fn an_outage_starts_the_time_again() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut renewals = Renewals::default();
        renewals.succeeded(at(0));
        renewals.succeeded(at(6));
        renewals.succeeded(at(12));
        // The database stood still for 7 s, and no statement failed.
        renewals.succeeded(at(19));
        assert!(!renewals.may_mark_lost(at(28)));
        assert!(renewals.may_mark_lost(at(29)));
        renewals.failed();
        renewals.succeeded(at(30));
        assert!(!renewals.may_mark_lost(at(39)));
        assert!(renewals.may_mark_lost(at(40)));
    }
}
