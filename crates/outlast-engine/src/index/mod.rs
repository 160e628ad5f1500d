//! The indexes of a store that lives in one process: by id, by owner, by deadline, and the counts.
//!
//! What a store keeps elsewhere (a row on disk, a body) hangs on each task as `C`, its cold part. Every
//! lock guards a few synchronous lines of one shard; no two are held at once. No operation walks
//! over retained tasks.

mod nodes;
mod owners;
mod shard;

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use outlast_wire::Timestamp;

use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::owner::Owner;
use crate::policy::Quota;
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::runtime::{Mutex, MutexGuard};
use crate::shards::Shards;
use crate::store::{
    Brief, Committed, Due, Feed, Inserted, Page, Position, Snapshot, StoreError, Usage,
};
use crate::task::Task;

use nodes::Nodes;
use owners::{Held, Listed, Owners};
use shard::{Shard, Slot};

/// Indexes over committed tasks. What is not admitted is not visible.
#[derive(Debug)]
pub struct Index<C> {
    shards: Shards<Shard<C>>,
    owners: Owners,
    nodes: Nodes,
    counts: CachePadded<Counts>,
}

/// Changed together by every new task.
#[derive(Debug, Default)]
struct Counts {
    open: AtomicU64,
    retained: AtomicU64,
    next_position: AtomicU64,
}

/// Whether there is room for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is, and it is held until the task is admitted or released.
    Held(Position),
    /// The owner used the request key before, for this task.
    Known(TaskId),
}

/// What a replaced or removed task had hanging on it.
#[derive(Debug)]
pub struct Replaced<C> {
    /// The task as it is now.
    pub now: Committed<Task>,
    /// The cold part it had.
    pub before: C,
}

/// How a task stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing<C> {
    /// Its revision.
    pub revision: Revision,
    /// Whether it has ended.
    pub has_ended: bool,
    /// The cold part it has.
    pub cold: C,
}

impl<C: Clone> Index<C> {
    /// An empty index whose first position is `first`.
    pub fn new(first: Position) -> Self {
        Self {
            shards: Shards::default(),
            owners: Owners::default(),
            nodes: Nodes::default(),
            counts: CachePadded::new(Counts {
                next_position: AtomicU64::new(first.0),
                ..Counts::default()
            }),
        }
    }

    /// Holds room for `task` within `quota`.
    pub fn reserve(&self, task: &Task, quota: &Quota) -> Result<Room, StoreError> {
        self.refuse_known(task.id)?;
        Ok(match self.hold(task, quota, false)? {
            Held::Room(position) => Room::Held(position),
            Held::Known(known) => Room::Known(known),
        })
    }

    /// Adds a task that is as durable as it will ever be.
    pub fn insert(&self, task: Arc<Task>, quota: &Quota, cold: C) -> Result<Inserted, StoreError> {
        let held = self.hold(&task, quota, true);
        if !matches!(held, Ok(Held::Room(_))) {
            // Of a task that is there already it does not matter whether there is room, or who has its key.
            self.refuse_known(task.id)?;
        }
        let position = match held? {
            Held::Room(position) => position,
            Held::Known(known) => return Ok(Inserted::Known(known)),
        };
        let slot = Slot::of(task.clone(), position, cold);
        if !self.shards.of(task.id).put_new(slot) {
            self.owners.unlist(&task.owner, position);
            self.release(&task);
            return Err(StoreError::Exists(task.id));
        }
        Ok(Inserted::New(Committed::confirmed_by_backend(task)))
    }

    fn refuse_known(&self, id: TaskId) -> Result<(), StoreError> {
        if self.shards.of(id).contains(id) {
            Err(StoreError::Exists(id))
        } else {
            Ok(())
        }
    }

    /// Holds room for `task`, and lists it at once if it is there to be seen.
    fn hold(&self, task: &Task, quota: &Quota, listed: bool) -> Result<Held, StoreError> {
        // Counted first and taken back if there is no room, so that two callers never share the last place.
        let retained = self.counts.retained.fetch_add(1, Ordering::Relaxed);
        let open = self.counts.open.fetch_add(1, Ordering::Relaxed);
        let held = match quota.allows(open, retained) {
            // A repeated request needs no room.
            Err(full) => self.owners.known(task).map(Held::Known).ok_or(full),
            Ok(()) => {
                let next = || Position(self.counts.next_position.fetch_add(1, Ordering::Relaxed));
                self.owners.hold(task, quota, listed, next)
            }
        };
        if !matches!(held, Ok(Held::Room(_))) {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
            self.counts.retained.fetch_sub(1, Ordering::Relaxed);
        }
        held
    }

    /// Gives up the room held for `task`.
    pub fn release(&self, task: &Task) {
        self.owners
            .release(&task.owner, task.request_key.as_deref(), true);
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.counts.retained.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes a task visible for which room is held.
    pub fn admit(&self, task: Arc<Task>, position: Position, cold: C) -> Committed<Task> {
        let listed = Listed::Open(task.id);
        self.owners.list(&task.owner, position, listed);
        self.shards
            .of(task.id)
            .put(Slot::of(task.clone(), position, cold));
        Committed::confirmed_by_backend(task)
    }

    /// Makes a task visible that a store found in its files.
    pub fn restore(&self, found: Found, position: Position, cold: C) {
        let (id, owner, key, ended) = match &found {
            Found::Open(task) => (task.id, &task.owner, &task.request_key, false),
            Found::Ended(brief) => (brief.id, &brief.owner, &brief.request_key, true),
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
            Found::Open(task) => {
                self.owners.list(&task.owner, position, Listed::Open(id));
                Slot::of(Arc::new(*task), position, cold)
            }
            Found::Ended(brief) => {
                let brief = Arc::new(brief);
                self.owners
                    .list(&brief.owner, position, Listed::Ended(brief.clone()));
                Slot::Ended {
                    brief,
                    position,
                    cold,
                }
            }
        };
        self.shards.of(id).put(slot);
    }

    /// Puts `next` in the place of the task at revision `expected`, with the cold part that `cold`
    /// makes from the one before.
    pub fn replace(
        &self,
        node: NodeId,
        expected: Revision,
        next: Arc<Task>,
        cold: impl FnOnce(&Arc<Task>, &C) -> C,
    ) -> Result<Replaced<C>, StoreError> {
        let before = self
            .shards
            .of(next.id)
            .replace(expected, &next, cold)
            .ok_or(StoreError::Conflict {
                id: next.id,
                expected,
            })?;
        if let Some(brief) = before.brief {
            self.counts
                .open
                .fetch_sub(u64::from(before.was_open), Ordering::Relaxed);
            self.owners.ended(before.position, brief, before.was_open);
        }
        self.nodes.tell_others(node, next.id);
        Ok(Replaced {
            now: Committed::confirmed_by_backend(next),
            before: before.cold,
        })
    }

    /// Removes a task that is still at `expected`, and returns what hung on it.
    pub fn remove(&self, node: NodeId, id: TaskId, expected: Revision) -> Option<C> {
        let slot = self.shards.of(id).remove(id, expected)?;
        let (owner, key, open) = match &slot {
            Slot::Open { task, .. } => (&task.owner, &task.request_key, true),
            Slot::Ended { brief, .. } => (&brief.owner, &brief.request_key, false),
        };
        self.owners.unlist(owner, slot.position());
        self.owners.release(owner, key.as_deref(), open);
        self.counts
            .open
            .fetch_sub(u64::from(open), Ordering::Relaxed);
        self.counts.retained.fetch_sub(1, Ordering::Relaxed);
        self.nodes.tell_others(node, id);
        Some(slot.into_cold())
    }

    /// How a task stands and what hangs on it.
    pub fn current(&self, id: TaskId) -> Option<Standing<C>> {
        let shard = self.shards.of(id);
        let slot = shard.find(id)?;
        Some(Standing {
            revision: slot.revision(),
            has_ended: matches!(slot, Slot::Ended { .. }),
            cold: slot.cold().clone(),
        })
    }

    /// What is known of a task.
    pub fn get(&self, scope: &Scope, id: TaskId) -> Option<Snapshot> {
        let shard = self.shards.of(id);
        let slot = shard.find(id).filter(|slot| scope.reaches(slot.owner()))?;
        Some(slot.snapshot())
    }

    /// Something of what hangs on a task.
    pub fn cold<T>(
        &self,
        scope: &Scope,
        id: TaskId,
        take: impl FnOnce(&C) -> Option<T>,
    ) -> Option<T> {
        let shard = self.shards.of(id);
        let slot = shard.find(id).filter(|slot| scope.reaches(slot.owner()))?;
        take(slot.cold())
    }

    /// What is known of a task, and what hangs on it.
    pub fn find(&self, scope: &Scope, id: TaskId) -> Option<(Snapshot, C)> {
        let shard = self.shards.of(id);
        let slot = shard.find(id).filter(|slot| scope.reaches(slot.owner()))?;
        Some((slot.snapshot(), slot.cold().clone()))
    }

    /// Part of an owner's list.
    pub fn page(&self, owner: &Owner, after: Option<Position>, limit: usize) -> Page {
        let (listed, next) = self.owners.page(owner, after, limit);
        let tasks = listed.into_iter().filter_map(|listed| match listed {
            Listed::Open(id) => self.get(&Scope::Anyone, id),
            Listed::Ended(brief) => Some(Snapshot::Ended(Committed::confirmed_by_backend(brief))),
        });
        let tasks = tasks.collect();
        Page { tasks, next }
    }

    /// Tasks whose moment has come, and the moment after those.
    pub fn due(&self, now: Timestamp, limit: usize) -> Due {
        let mut due = Due::default();
        for shard in self.shards.each() {
            let left = limit.saturating_sub(due.tasks.len());
            let next = shard.due(now, left, &mut due.tasks);
            due.next = [due.next, next].into_iter().flatten().min();
        }
        due
    }

    /// Open tasks whose executor is gone, each offered to one living node at a time.
    pub fn claim(&self, node: NodeId, limit: usize) -> Vec<Committed<Task>> {
        let living = self.nodes.living();
        let mut claimed = Vec::new();
        for mut shard in self.shards.each() {
            let left = limit - claimed.len();
            if left == 0 {
                break;
            }
            shard.claim(node, &living, left, &mut claimed);
        }
        claimed
    }

    /// How much of the quota is used.
    pub fn usage(&self, owner: &Owner) -> Usage {
        let (owner_open, owner_retained) = self.owners.usage(owner);
        Usage {
            owner_open,
            owner_retained,
            open: self.counts.open.load(Ordering::Relaxed),
            retained: self.counts.retained.load(Ordering::Relaxed),
        }
    }

    /// Says that `node` lives and wants to hear of others.
    pub fn join(&self, node: NodeId) -> Feed {
        self.nodes.join(node)
    }

    /// Says that `node` is gone.
    pub fn leave(&self, node: NodeId) {
        self.nodes.leave(node);
    }
}

/// A task that a store found in its files.
#[derive(Clone, Debug)]
pub enum Found {
    /// It has not ended.
    Open(Box<Task>),
    /// It has.
    Ended(Brief),
}

/// No critical section here leaves a shard half-written: each is a few map operations that do not panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
