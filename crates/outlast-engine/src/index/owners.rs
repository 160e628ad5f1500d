//! What each owner has: its list, its counts, its request keys. An owner without tasks costs nothing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::lock;
use crate::id::TaskId;
use crate::owner::Owner;
use crate::policy::Quota;
use crate::runtime::Mutex;
use crate::store::{Brief, Position, StoreError};
use crate::task::Task;

#[derive(Debug)]
pub(super) struct Owners {
    shards: Box<[Mutex<HashMap<Owner, Holdings>>]>,
}

#[derive(Debug, Default)]
struct Holdings {
    open: u32,
    /// Tasks that are visible or for which room is held.
    retained: u32,
    /// Visible tasks in the order they were created.
    list: BTreeMap<Position, Listed>,
    keys: HashMap<Box<str>, TaskId>,
}

/// What an owner has, or had before.
pub(super) enum Held {
    /// Room for a task, which will be listed there.
    Room(Position),
    /// The task that has the request key.
    Known(TaskId),
}

/// A task in a list. What has ended is at hand, so that a page of it is read in one place.
#[derive(Clone, Debug)]
pub(super) enum Listed {
    Open(TaskId),
    Ended(Arc<Brief>),
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Owners {
    /// Holds room at the position that `next` gives out, or names the task that has the request key already.
    pub(super) fn hold(
        &self,
        task: &Task,
        quota: &Quota,
        listed: bool,
        next: impl FnOnce() -> Position,
    ) -> Result<Held, StoreError> {
        let owner = &task.owner;
        let mut shard = lock(self.shard(owner));
        let held = match shard.get_mut(owner) {
            Some(held) => {
                if let Some(known) = held.known(task) {
                    return Ok(Held::Known(known));
                }
                quota.allows_owner(owner, held.open, held.retained)?;
                held
            }
            None => {
                quota.allows_owner(owner, 0, 0)?;
                Holdings::of(&mut shard, owner)
            }
        };
        held.hold(task.request_key.as_deref(), task.id, true);
        let position = next();
        if listed {
            held.list.insert(position, Listed::Open(task.id));
        }
        Ok(Held::Room(position))
    }

    /// The task that has the request key of `task` already.
    pub(super) fn known(&self, task: &Task) -> Option<TaskId> {
        lock(self.shard(&task.owner)).get(&task.owner)?.known(task)
    }

    /// Gives up the room of one task.
    pub(super) fn release(&self, owner: &Owner, key: Option<&str>, open: bool) {
        let mut shard = lock(self.shard(owner));
        let Some(held) = shard.get_mut(owner) else {
            return;
        };
        held.open -= u32::from(open);
        held.retained -= 1;
        if let Some(key) = key {
            held.keys.remove(key);
        }
        if held.is_nothing() {
            shard.remove(owner);
        }
    }

    /// Adds a task to the list of its owner, if there is room held for it.
    pub(super) fn list(&self, owner: &Owner, position: Position, listed: Listed) {
        if let Some(held) = lock(self.shard(owner)).get_mut(owner) {
            held.list.insert(position, listed);
        }
    }

    pub(super) fn unlist(&self, owner: &Owner, position: Position) {
        if let Some(held) = lock(self.shard(owner)).get_mut(owner) {
            held.list.remove(&position);
        }
    }

    /// Lists a task as ended, and counts its end if it was open before.
    pub(super) fn ended(&self, position: Position, brief: Arc<Brief>, was_open: bool) {
        let mut shard = lock(self.shard(&brief.owner));
        let Some(held) = shard.get_mut(&brief.owner) else {
            return;
        };
        held.open -= u32::from(was_open);
        // It may have been removed meanwhile, and of two changes the later may come first.
        let newer = |listed: &Listed| match listed {
            Listed::Open(_) => true,
            Listed::Ended(known) => known.revision < brief.revision,
        };
        if let Some(listed) = held.list.get_mut(&position) {
            // What is listed is retained: this was not the last of its owner.
            if newer(listed) {
                *listed = Listed::Ended(brief);
            }
        } else if held.is_nothing() {
            shard.remove(&brief.owner);
        }
    }

    /// Holds room for a task found in a file.
    pub(super) fn restore(&self, owner: &Owner, key: Option<&str>, id: TaskId, ended: bool) {
        let mut shard = lock(self.shard(owner));
        Holdings::of(&mut shard, owner).hold(key, id, !ended);
    }

    /// Up to `limit` tasks before `after`, newest first, and where to go on.
    pub(super) fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> (Vec<Listed>, Option<Position>) {
        let shard = lock(self.shard(owner));
        let Some(held) = shard.get(owner) else {
            return (Vec::new(), None);
        };
        let before = after.unwrap_or(Position(u64::MAX));
        let mut rest = held.list.range(..before).rev();
        let mut last = None;
        let page = rest.by_ref().take(limit).map(|(position, listed)| {
            last = Some(*position);
            listed.clone()
        });
        let page = page.collect();
        (page, rest.next().and(last))
    }

    pub(super) fn usage(&self, owner: &Owner) -> (u32, u32) {
        let shard = lock(self.shard(owner));
        shard
            .get(owner)
            .map_or((0, 0), |held| (held.open, held.retained))
    }

    fn shard(&self, owner: &Owner) -> &Mutex<HashMap<Owner, Holdings>> {
        // Only the map inside a shard needs a hash that no caller can foresee.
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        &self.shards[hasher.finish() as usize % SHARDS]
    }
}

impl Quota {
    /// Whether a store with so many tasks of all owners may have one more.
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

    /// Whether an owner that has so many tasks may have one more.
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

impl Holdings {
    /// What `owner` has in `shard`.
    fn of<'s>(shard: &'s mut HashMap<Owner, Self>, owner: &Owner) -> &'s mut Self {
        shard.entry(owner.clone()).or_default()
    }

    /// Both counts: a task may be removed before its end is counted.
    fn is_nothing(&self) -> bool {
        self.retained == 0 && self.open == 0
    }

    fn known(&self, task: &Task) -> Option<TaskId> {
        self.keys.get(task.request_key.as_deref()?).copied()
    }

    fn hold(&mut self, key: Option<&str>, id: TaskId, open: bool) {
        self.open += u32::from(open);
        self.retained += 1;
        if let Some(key) = key {
            self.keys.insert(key.into(), id);
        }
    }
}

const SHARDS: usize = 16;
