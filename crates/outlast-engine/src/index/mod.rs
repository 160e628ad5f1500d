//! The indexes of a store within one process: by id, by owner, by deadline, and the counts.
//!
//! Each task carries a value `C`, its cold part: what the store holds elsewhere, such as a row
//! number or a body. A lock guards a few synchronous lines on one shard, and no two locks are held
//! at once. No operation iterates over all tasks; a search examines a bounded number.

mod nodes;
mod owners;
mod shard;

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use outlast_wire::Timestamp;

use crate::engine::Progress;
use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::owner::Owner;
use crate::policy::Quota;
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::runtime::{Mutex, MutexGuard};
use crate::shards::Shards;
use crate::store::{
    Committed, DueTasks, Filter, InsertResult, NodeStatus, Page, Position, Snapshot, StoreError,
    StoreEvents, TaskSummary, Usage,
};
use crate::task::Task;

use nodes::Nodes;
use owners::{ListedTask, OwnerReservation, Owners};
use shard::{Shard, Slot};

/// Indexes over committed tasks. A task that is not admitted is not visible.
#[derive(Debug)]
pub struct Index<C> {
    shards: Shards<Shard<C>>,
    owners: Owners,
    nodes: Nodes,
    counts: CachePadded<TaskCounters>,
}

/// Counters that every new task changes; padded together.
#[derive(Debug, Default)]
struct TaskCounters {
    open: AtomicU64,
    retained: AtomicU64,
    next_position: AtomicU64,
}

/// The result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaReservation {
    /// The quota is reserved for the task until it is admitted or released. The task gets this
    /// position.
    Reserved(Position),
    /// The owner has this task with the same request key.
    Existing(TaskId),
}

/// A replaced task.
#[derive(Debug)]
pub struct Replacement<C> {
    /// The new revision.
    pub now: Committed<Task>,
    /// The cold part of the old revision.
    pub before: C,
}

/// The current index entry of a task.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTask<C> {
    /// Its revision.
    pub revision: Revision,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Its cold part.
    pub cold: C,
}

impl<C: Clone> Index<C> {
    /// An empty index whose first position is `first`.
    pub fn new(first: Position) -> Self {
        Self {
            shards: Shards::default(),
            owners: Owners::default(),
            nodes: Nodes::default(),
            counts: CachePadded::new(TaskCounters {
                next_position: AtomicU64::new(first.0),
                ..TaskCounters::default()
            }),
        }
    }

    /// Reserves quota for `task`.
    pub fn reserve(&self, task: &Task, quota: &Quota) -> Result<QuotaReservation, StoreError> {
        self.refuse_existing(task.id)?;
        Ok(match self.reserve_quota(task, quota, false)? {
            OwnerReservation::Reserved(position) => QuotaReservation::Reserved(position),
            OwnerReservation::Existing(known) => QuotaReservation::Existing(known),
        })
    }

    /// Adds a committed task.
    pub fn insert(
        &self,
        task: Arc<Task>,
        quota: &Quota,
        cold: C,
    ) -> Result<InsertResult, StoreError> {
        let reservation = self.reserve_quota(&task, quota, true);
        if !matches!(reservation, Ok(OwnerReservation::Reserved(_))) {
            // An id that exists is reported first, whatever the quota and the request key say.
            self.refuse_existing(task.id)?;
        }
        let position = match reservation? {
            OwnerReservation::Reserved(position) => position,
            OwnerReservation::Existing(known) => return Ok(InsertResult::Existing(known)),
        };
        let slot = Slot::of(task.clone(), position, cold);
        if !self.shards.lock(task.id).put_new(slot) {
            self.owners.unlist(&task.owner, position);
            self.release(&task);
            return Err(StoreError::Exists(task.id));
        }
        Ok(InsertResult::New(Committed::confirmed_by_backend(task)))
    }

    fn refuse_existing(&self, id: TaskId) -> Result<(), StoreError> {
        if self.shards.lock(id).contains(id) {
            Err(StoreError::Exists(id))
        } else {
            Ok(())
        }
    }

    /// Reserves quota for `task`, and lists it if `listed`.
    fn reserve_quota(
        &self,
        task: &Task,
        quota: &Quota,
        listed: bool,
    ) -> Result<OwnerReservation, StoreError> {
        // Count first and undo if the quota is exceeded, so that two callers never get the same
        // last unit.
        let retained = self.counts.retained.fetch_add(1, Ordering::Relaxed);
        let open = self.counts.open.fetch_add(1, Ordering::Relaxed);
        let reservation = match quota.allows(open, retained) {
            // A repeated request needs no quota.
            Err(full) => self
                .owners
                .existing(task)
                .map(OwnerReservation::Existing)
                .ok_or(full),
            Ok(()) => {
                let next = || Position(self.counts.next_position.fetch_add(1, Ordering::Relaxed));
                self.owners.reserve(task, quota, listed, next)
            }
        };
        if !matches!(reservation, Ok(OwnerReservation::Reserved(_))) {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
            self.counts.retained.fetch_sub(1, Ordering::Relaxed);
        }
        reservation
    }

    /// Releases the quota reserved for `task`.
    pub fn release(&self, task: &Task) {
        self.owners
            .release(&task.owner, task.request_key.as_deref(), true);
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.counts.retained.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes a task visible whose quota is reserved.
    pub fn admit(&self, task: Arc<Task>, position: Position, cold: C) -> Committed<Task> {
        let listed = ListedTask::Open(task.id);
        self.owners.list(&task.owner, position, listed);
        self.shards
            .lock(task.id)
            .put(Slot::of(task.clone(), position, cold));
        Committed::confirmed_by_backend(task)
    }

    /// Makes a task visible that a store has read from its files.
    pub fn restore(&self, found: StoredTask, position: Position, cold: C) {
        let (id, owner, key, ended) = match &found {
            StoredTask::Open(task) => (task.id, &task.owner, &task.request_key, false),
            StoredTask::Ended(summary) => (summary.id, &summary.owner, &summary.request_key, true),
        };
        self.owners.restore(owner, key.as_deref(), id, ended);
        self.counts.retained.fetch_add(1, Ordering::Relaxed);
        self.counts
            .open
            .fetch_add(u64::from(!ended), Ordering::Relaxed);
        self.counts
            .next_position
            .fetch_max(position.0 + 1, Ordering::Relaxed);
        let slot = match found {
            StoredTask::Open(task) => {
                self.owners
                    .list(&task.owner, position, ListedTask::Open(id));
                Slot::of(Arc::new(*task), position, cold)
            }
            StoredTask::Ended(summary) => {
                let summary = Arc::new(summary);
                self.owners
                    .list(&summary.owner, position, ListedTask::Ended(summary.clone()));
                Slot::Ended {
                    summary,
                    position,
                    cold,
                }
            }
        };
        self.shards.lock(id).put(slot);
    }

    /// Replaces the task at revision `expected` by `next`. `cold` makes the new cold part from the
    /// old one.
    pub fn replace(
        &self,
        node: NodeId,
        expected: Revision,
        next: Arc<Task>,
        cold: impl FnOnce(&Arc<Task>, &C) -> C,
    ) -> Result<Replacement<C>, StoreError> {
        let before = self
            .shards
            .lock(next.id)
            .replace(expected, &next, cold)
            .ok_or(StoreError::Conflict {
                id: next.id,
                expected,
            })?;
        if let Some(summary) = before.summary {
            self.counts
                .open
                .fetch_sub(u64::from(before.was_open), Ordering::Relaxed);
            self.owners.ended(before.position, summary, before.was_open);
        }
        self.nodes.notify_others(node, next.id);
        Ok(Replacement {
            now: Committed::confirmed_by_backend(next),
            before: before.cold,
        })
    }

    /// Removes a task that is still at `expected`, and returns its cold part.
    pub fn remove(&self, node: NodeId, id: TaskId, expected: Revision) -> Option<C> {
        let slot = self.shards.lock(id).remove(id, expected)?;
        let (owner, key, open) = match &slot {
            Slot::Open { task, .. } => (&task.owner, &task.request_key, true),
            Slot::Ended { summary, .. } => (&summary.owner, &summary.request_key, false),
        };
        self.owners.unlist(owner, slot.position());
        self.owners.release(owner, key.as_deref(), open);
        self.counts
            .open
            .fetch_sub(u64::from(open), Ordering::Relaxed);
        self.counts.retained.fetch_sub(1, Ordering::Relaxed);
        self.nodes.notify_others(node, id);
        Some(slot.into_cold())
    }

    /// The index entry of a task.
    pub fn current(&self, id: TaskId) -> Option<IndexedTask<C>> {
        let shard = self.shards.lock(id);
        let slot = shard.find(id)?;
        Some(IndexedTask {
            revision: slot.revision(),
            has_ended: matches!(slot, Slot::Ended { .. }),
            cold: slot.cold().clone(),
        })
    }

    /// The snapshot of a task.
    pub fn get(&self, scope: &Scope, id: TaskId) -> Option<Snapshot> {
        let shard = self.shards.lock(id);
        let slot = shard.find(id).filter(|slot| scope.includes(slot.owner()))?;
        Some(slot.snapshot())
    }

    /// Part of the cold part of a task.
    pub fn cold<T>(
        &self,
        scope: &Scope,
        id: TaskId,
        take: impl FnOnce(&C) -> Option<T>,
    ) -> Option<T> {
        let shard = self.shards.lock(id);
        let slot = shard.find(id).filter(|slot| scope.includes(slot.owner()))?;
        take(slot.cold())
    }

    /// The snapshot of a task and its cold part.
    pub fn find(&self, scope: &Scope, id: TaskId) -> Option<(Snapshot, C)> {
        let shard = self.shards.lock(id);
        let slot = shard.find(id).filter(|slot| scope.includes(slot.owner()))?;
        Some((slot.snapshot(), slot.cold().clone()))
    }

    /// A page of an owner's list.
    pub fn page(&self, owner: &Owner, after: Option<Position>, limit: usize) -> Page {
        let (listed, next) = self.owners.page(owner, after, limit);
        let tasks = listed.into_iter().filter_map(|listed| self.listed(listed));
        let tasks = tasks.collect();
        Page { tasks, next }
    }

    /// A page of a search.
    pub fn search(&self, filter: &Filter, after: Option<Position>, limit: usize) -> Page {
        let newest = self
            .owners
            .newest(filter.owner.as_ref(), after, MAX_SEARCHED_TASKS);
        let is_complete = newest.len() < MAX_SEARCHED_TASKS;
        let (mut tasks, mut last) = (Vec::new(), None);
        for (position, listed) in newest {
            if tasks.len() == limit {
                return Page { tasks, next: last };
            }
            last = Some(position);
            let found = self.listed(listed);
            tasks.extend(found.filter(|task| filter.matches(task)));
        }
        let next = last.filter(|_| !is_complete);
        Page { tasks, next }
    }

    fn listed(&self, listed: ListedTask) -> Option<Snapshot> {
        match listed {
            ListedTask::Open(id) => self.get(&Scope::AnyTask, id),
            ListedTask::Ended(summary) => {
                Some(Snapshot::Ended(Committed::confirmed_by_backend(summary)))
            }
        }
    }

    /// Tasks whose due time has come, and the next due time.
    pub fn due(&self, now: Timestamp, limit: usize) -> DueTasks {
        let mut due = DueTasks::default();
        for shard in self.shards.lock_each() {
            let left = limit.saturating_sub(due.tasks.len());
            let next = shard.due(now, left, &mut due.tasks);
            due.next = [due.next, next].into_iter().flatten().min();
        }
        due
    }

    /// Open tasks whose executor has left. Each is offered to one joined node at a time.
    pub fn claim(&self, node: NodeId, limit: usize) -> Vec<Committed<Task>> {
        let joined = self.nodes.joined();
        let mut claimed = Vec::new();
        for mut shard in self.shards.lock_each() {
            let left = limit - claimed.len();
            if left == 0 {
                break;
            }
            shard.claim(node, &joined, left, &mut claimed);
        }
        claimed
    }

    /// The counts that the quota limits.
    pub fn usage(&self, owner: &Owner) -> Usage {
        let (owner_open, owner_retained) = self.owners.usage(owner);
        Usage {
            owner_open,
            owner_retained,
            open: self.counts.open.load(Ordering::Relaxed),
            retained: self.counts.retained.load(Ordering::Relaxed),
        }
    }

    /// Registers `node` and returns the events of other nodes.
    pub fn join(&self, node: NodeId) -> StoreEvents {
        self.nodes.join(node)
    }

    /// Sets the address of a joined node.
    pub fn publish_address(&self, node: NodeId, address: &str) {
        self.nodes.publish_address(node, address);
    }

    /// Sends progress of a task to the other joined nodes.
    pub fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        self.nodes.publish_progress(node, id, progress);
    }

    /// The joined nodes, in the order of their ids.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let mut open = BTreeMap::new();
        for shard in self.shards.lock_each() {
            shard.count_executors(&mut open);
        }
        self.nodes.statuses(&open)
    }

    /// Removes `node`.
    pub fn leave(&self, node: NodeId) {
        self.nodes.leave(node);
    }
}

/// A task that a store has read from its files.
#[derive(Clone, Debug)]
pub enum StoredTask {
    /// An open task.
    Open(Box<Task>),
    /// An ended task.
    Ended(TaskSummary),
}

/// The number of tasks that one call of a search examines.
const MAX_SEARCHED_TASKS: usize = 1_000;

/// Locks a shard. Critical sections are a few map operations that do not panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
