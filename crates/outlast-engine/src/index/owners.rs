//! The list, counts and request keys of each owner. An owner without tasks has no entry.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::lock;
use crate::id::TaskId;
use crate::owner::Owner;
use crate::policy::Quota;
use crate::runtime::Mutex;
use crate::store::{Position, StoreError, TaskSummary};
use crate::task::Task;

#[derive(Debug)]
pub(super) struct Owners {
    shards: Box<[Mutex<HashMap<Owner, OwnerEntry>>]>,
}

#[derive(Debug, Default)]
struct OwnerEntry {
    open: u32,
    /// Tasks that are visible or whose quota is reserved.
    retained: u32,
    /// Visible tasks in the order of insertion.
    list: BTreeMap<Position, ListedTask>,
    keys: HashMap<Box<str>, TaskId>,
}

/// The result of a reservation.
pub(super) enum OwnerReservation {
    /// The quota is reserved for a task at this position.
    Reserved(Position),
    /// The owner has this task with the same request key.
    Existing(TaskId),
}

/// A task in a list. The summary of an ended task is shared here, so that a page needs no lookup by
/// id.
#[derive(Clone, Debug)]
pub(super) enum ListedTask {
    Open(TaskId),
    Ended(Arc<TaskSummary>),
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Owners {
    /// Reserves quota at the position that `next` returns, or returns the task that has the request
    /// key already.
    pub(super) fn reserve(
        &self,
        task: &Task,
        quota: &Quota,
        listed: bool,
        next: impl FnOnce() -> Position,
    ) -> Result<OwnerReservation, StoreError> {
        let owner = &task.owner;
        let mut shard = lock(self.shard(owner));
        let entry = match shard.get_mut(owner) {
            Some(entry) => {
                if let Some(existing) = entry.existing(task) {
                    return Ok(OwnerReservation::Existing(existing));
                }
                quota.allows_owner(owner, entry.open, entry.retained)?;
                entry
            }
            None => {
                quota.allows_owner(owner, 0, 0)?;
                OwnerEntry::of(&mut shard, owner)
            }
        };
        entry.add(task.request_key.as_deref(), task.id, true);
        let position = next();
        if listed {
            entry.list.insert(position, ListedTask::Open(task.id));
        }
        Ok(OwnerReservation::Reserved(position))
    }

    /// The task that has the request key of `task` already.
    pub(super) fn existing(&self, task: &Task) -> Option<TaskId> {
        lock(self.shard(&task.owner))
            .get(&task.owner)?
            .existing(task)
    }

    /// Releases the quota of one task.
    pub(super) fn release(&self, owner: &Owner, key: Option<&str>, open: bool) {
        let mut shard = lock(self.shard(owner));
        let Some(entry) = shard.get_mut(owner) else {
            return;
        };
        entry.open -= u32::from(open);
        entry.retained -= 1;
        if let Some(key) = key {
            entry.keys.remove(key);
        }
        if entry.is_empty() {
            shard.remove(owner);
        }
    }

    /// Adds a task to the list of its owner, if quota is reserved for it.
    pub(super) fn list(&self, owner: &Owner, position: Position, listed: ListedTask) {
        if let Some(entry) = lock(self.shard(owner)).get_mut(owner) {
            entry.list.insert(position, listed);
        }
    }

    pub(super) fn unlist(&self, owner: &Owner, position: Position) {
        if let Some(entry) = lock(self.shard(owner)).get_mut(owner) {
            entry.list.remove(&position);
        }
    }

    /// Lists a task as ended, and counts its end if it was open before.
    pub(super) fn ended(&self, position: Position, summary: Arc<TaskSummary>, was_open: bool) {
        let mut shard = lock(self.shard(&summary.owner));
        let Some(entry) = shard.get_mut(&summary.owner) else {
            return;
        };
        entry.open -= u32::from(was_open);
        // The task may have been removed meanwhile, and two changes may arrive here in the wrong
        // order.
        let newer = |listed: &ListedTask| match listed {
            ListedTask::Open(_) => true,
            ListedTask::Ended(known) => known.revision < summary.revision,
        };
        if let Some(listed) = entry.list.get_mut(&position) {
            // A listed task is retained, so the entry of its owner is not empty.
            if newer(listed) {
                *listed = ListedTask::Ended(summary);
            }
        } else if entry.is_empty() {
            shard.remove(&summary.owner);
        }
    }

    /// Counts a task that was read from a file.
    pub(super) fn restore(&self, owner: &Owner, key: Option<&str>, id: TaskId, ended: bool) {
        let mut shard = lock(self.shard(owner));
        OwnerEntry::of(&mut shard, owner).add(key, id, !ended);
    }

    /// Up to `limit` tasks before `after`, newest first, and the position of the next page.
    pub(super) fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> (Vec<ListedTask>, Option<Position>) {
        let shard = lock(self.shard(owner));
        let Some(entry) = shard.get(owner) else {
            return (Vec::new(), None);
        };
        let before = after.unwrap_or(Position(u64::MAX));
        let mut rest = entry.list.range(..before).rev();
        let mut last = None;
        let page = rest.by_ref().take(limit).map(|(position, listed)| {
            last = Some(*position);
            listed.clone()
        });
        let page = page.collect();
        (page, rest.next().and(last))
    }

    /// The newest `limit` tasks before `after`, newest first, of one or all owners.
    pub(super) fn newest(
        &self,
        owner: Option<&Owner>,
        after: Option<Position>,
        limit: usize,
    ) -> Vec<(Position, ListedTask)> {
        let before = after.unwrap_or(Position(u64::MAX));
        let mut newest = Vec::new();
        let mut add = |entry: &OwnerEntry| {
            let listed = entry.list.range(..before).rev().take(limit);
            newest.extend(listed.map(|(position, listed)| (*position, listed.clone())));
            // Bounds the memory when there are many owners.
            if newest.len() > 4 * limit {
                retain_newest(&mut newest, limit);
            }
        };
        match owner {
            Some(owner) => {
                if let Some(entry) = lock(self.shard(owner)).get(owner) {
                    add(entry);
                }
            }
            None => {
                for shard in &self.shards {
                    lock(shard).values().for_each(&mut add);
                }
            }
        }
        retain_newest(&mut newest, limit);
        newest
    }

    pub(super) fn usage(&self, owner: &Owner) -> (u32, u32) {
        let shard = lock(self.shard(owner));
        shard
            .get(owner)
            .map_or((0, 0), |entry| (entry.open, entry.retained))
    }

    fn shard(&self, owner: &Owner) -> &Mutex<HashMap<Owner, OwnerEntry>> {
        // Only the map inside a shard needs a hash that callers cannot predict.
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        &self.shards[hasher.finish() as usize % SHARDS]
    }
}

impl Quota {
    /// Whether a store with these counts may take one more task.
    pub(super) fn allows(&self, open: u64, retained: u64) -> Result<(), StoreError> {
        if retained >= self.retained {
            return Err(StoreError::Full {
                limit: self.retained,
            });
        }
        if open >= self.open {
            return Err(StoreError::Busy { limit: self.open });
        }
        Ok(())
    }

    /// Whether an owner with these counts may have one more task.
    fn allows_owner(&self, owner: &Owner, open: u32, retained: u32) -> Result<(), StoreError> {
        if open >= self.owner_open {
            return Err(StoreError::OwnerBusy {
                owner: owner.clone(),
                limit: self.owner_open,
            });
        }
        if retained >= self.owner_retained {
            return Err(StoreError::OwnerFull {
                owner: owner.clone(),
                limit: self.owner_retained,
            });
        }
        Ok(())
    }
}

impl OwnerEntry {
    /// The entry of `owner` in `shard`.
    fn of<'s>(shard: &'s mut HashMap<Owner, Self>, owner: &Owner) -> &'s mut Self {
        shard.entry(owner.clone()).or_default()
    }

    /// Checks both counts: a task may be removed before its end is counted.
    fn is_empty(&self) -> bool {
        self.retained == 0 && self.open == 0
    }

    fn existing(&self, task: &Task) -> Option<TaskId> {
        self.keys.get(task.request_key.as_deref()?).copied()
    }

    fn add(&mut self, key: Option<&str>, id: TaskId, open: bool) {
        self.open += u32::from(open);
        self.retained += 1;
        if let Some(key) = key {
            self.keys.insert(key.into(), id);
        }
    }
}

/// Sorts `tasks`, newest first, and retains the first `limit`.
fn retain_newest(tasks: &mut Vec<(Position, ListedTask)>, limit: usize) {
    tasks.sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
    tasks.truncate(limit);
}

const SHARDS: usize = 16;
