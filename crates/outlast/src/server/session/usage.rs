//! The last use of a session and its open requests, which decide how long the session is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use outlast_engine::{Clock, Owner, SystemClock, TaskId};
use outlast_wire::Timestamp;

use super::record::StoredSession;

/// The use of one session, shared by all requests.
pub(super) struct SessionUse {
    /// The owner of its tasks.
    owner: Owner,
    /// The owner whose session count it adds to: a principal or an address.
    counts_for: Owner,
    last_used_ms: AtomicU64,
    /// The last use that is stored.
    stored_use_ms: AtomicU64,
    /// The number of open requests and streams.
    open: Arc<AtomicUsize>,
    /// Whether it has ended or was evicted.
    ended: AtomicBool,
    /// The tasks that were created in it, as of its last record. A session in memory has newer
    /// ones.
    created_tasks: Vec<TaskId>,
}

/// Counts one open request or stream of a session until it is dropped.
pub(crate) struct StreamPermit(Arc<AtomicUsize>);

impl SessionUse {
    /// The use of a new session of `owner`.
    pub(super) fn new(owner: Owner, counts_for: Owner) -> Self {
        Self::at(owner, counts_for, now(), Vec::new())
    }

    /// The use of a stored session of `owner`. Without a stored last use it counts from now.
    pub(super) fn stored(owner: Owner, stored: StoredSession) -> Self {
        let counts_for = stored.counts_for.unwrap_or_else(|| owner.clone());
        let used = stored.used.unwrap_or_else(now);
        Self::at(owner, counts_for, used, stored.created_tasks)
    }

    fn at(owner: Owner, counts_for: Owner, used: Timestamp, created_tasks: Vec<TaskId>) -> Self {
        Self {
            owner,
            counts_for,
            last_used_ms: AtomicU64::new(used.0),
            stored_use_ms: AtomicU64::new(used.0),
            open: Arc::default(),
            ended: AtomicBool::new(false),
            created_tasks,
        }
    }

    /// The owner of its tasks.
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The owner whose session count it adds to.
    pub(super) fn counts_for(&self) -> &Owner {
        &self.counts_for
    }

    /// The tasks that were created in it, as of its last record.
    pub(super) fn stored_tasks(&self) -> &[TaskId] {
        &self.created_tasks
    }

    pub(super) fn last_used(&self) -> Timestamp {
        Timestamp(self.last_used_ms.load(Ordering::Relaxed))
    }

    /// Records a use at `time`.
    pub(super) fn mark_used(&self, time: Timestamp) {
        self.last_used_ms.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Counts one more open request or stream; `None` if there are `limit` already.
    pub(super) fn permit(&self, limit: usize) -> Option<StreamPermit> {
        let permit = StreamPermit(self.open.clone());
        let before = permit.0.fetch_add(1, Ordering::Relaxed);
        // Dropping the permit decrements the count.
        (before < limit).then_some(permit)
    }

    /// Whether it has an open request or stream.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Whether it has ended or was evicted.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Ends it, unless it is in use, was used after `last_used`, or has ended.
    pub(super) fn end_if_unused_since(&self, last_used: Timestamp) -> bool {
        let is_unused = !self.is_open() && self.last_used() == last_used;
        is_unused && !self.ended.swap(true, Ordering::SeqCst)
    }

    /// Reverts the end, which could not be stored.
    pub(super) fn undo_end(&self) {
        self.ended.store(false, Ordering::SeqCst);
    }

    /// Whether the stored last use is more than `lag_ms` older than the last use.
    pub(super) fn is_stored_use_stale(&self, lag_ms: u64) -> bool {
        let stored = self.stored_use_ms.load(Ordering::Relaxed);
        self.last_used().0 > stored.saturating_add(lag_ms)
    }

    /// Marks the last use as stored; returns the previous value for [`SessionUse::undo_store`].
    /// `None` if another request stores it.
    pub(super) fn begin_store(&self) -> Option<Timestamp> {
        let relaxed = Ordering::Relaxed;
        let before = self.stored_use_ms.load(relaxed);
        self.stored_use_ms
            .compare_exchange(before, self.last_used().0, relaxed, relaxed)
            .ok()
            .map(Timestamp)
    }

    /// Reverts [`SessionUse::begin_store`] after a failed write.
    pub(super) fn undo_store(&self, before: Timestamp) {
        self.stored_use_ms.store(before.0, Ordering::Relaxed);
    }

    /// Records that a use at `time` is stored.
    pub(super) fn mark_stored(&self, time: Timestamp) {
        self.stored_use_ms.fetch_max(time.0, Ordering::Relaxed);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn now() -> Timestamp {
    SystemClock.now()
}
