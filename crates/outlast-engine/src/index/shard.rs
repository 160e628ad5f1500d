//! One shard of the tasks, with its deadlines.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::id::{IdMap, NodeId, Revision, TaskId};
use crate::owner::Owner;
use crate::store::{Committed, Position, Snapshot, TaskSummary};
use crate::task::Task;

/// A shard of the tasks: open ones whole, ended ones as summaries.
#[derive(Debug)]
pub(super) struct Shard<C> {
    open: IdMap<Slot<C>>,
    ended: IdMap<Slot<C>>,
    due: BTreeMap<(Timestamp, Position), TaskId>,
}

/// One task in the index.
#[derive(Debug)]
pub(super) enum Slot<C> {
    /// An open task.
    Open {
        task: Arc<Task>,
        position: Position,
        cold: C,
        /// The node to which it was offered after its executor left.
        offered: Option<NodeId>,
    },
    /// An ended task.
    Ended {
        summary: Arc<TaskSummary>,
        position: Position,
        cold: C,
    },
}

pub(super) struct ReplacedSlot<C> {
    pub(super) was_open: bool,
    pub(super) position: Position,
    pub(super) cold: C,
    /// The summary of the new revision, if it has ended.
    pub(super) summary: Option<Arc<TaskSummary>>,
}

impl<C> Default for Shard<C> {
    fn default() -> Self {
        Self {
            open: IdMap::default(),
            ended: IdMap::default(),
            due: BTreeMap::new(),
        }
    }
}

impl<C> Shard<C> {
    pub(super) fn contains(&self, id: TaskId) -> bool {
        self.find(id).is_some()
    }

    pub(super) fn find(&self, id: TaskId) -> Option<&Slot<C>> {
        self.open.get(&id).or_else(|| self.ended.get(&id))
    }

    pub(super) fn put(&mut self, slot: Slot<C>) {
        let id = slot.id();
        self.due.insert(slot.due(), id);
        match slot {
            Slot::Open { .. } => self.open.insert(id, slot),
            Slot::Ended { .. } => self.ended.insert(id, slot),
        };
    }

    /// Adds a task, unless one with that id exists.
    pub(super) fn put_new(&mut self, slot: Slot<C>) -> bool {
        let id = slot.id();
        let (to, other) = match slot {
            Slot::Open { .. } => (&mut self.open, &self.ended),
            Slot::Ended { .. } => (&mut self.ended, &self.open),
        };
        match to.entry(id) {
            Entry::Vacant(entry) if !other.contains_key(&id) => {
                self.due.insert(slot.due(), id);
                entry.insert(slot);
                true
            }
            Entry::Vacant(_) | Entry::Occupied(_) => false,
        }
    }

    pub(super) fn replace(
        &mut self,
        expected: Revision,
        next: &Arc<Task>,
        cold: impl FnOnce(&Arc<Task>, &C) -> C,
    ) -> Option<ReplacedSlot<C>> {
        let id = next.id;
        let (open, ended) = (&mut self.open, &mut self.ended);
        let mut known = match (open.entry(id), ended) {
            (Entry::Occupied(known), _) => known,
            (Entry::Vacant(_), ended) => match ended.entry(id) {
                Entry::Occupied(known) => known,
                Entry::Vacant(_) => return None,
            },
        };
        let slot = known.get();
        if slot.revision() != expected {
            return None;
        }
        let (was_open, due) = (matches!(slot, Slot::Open { .. }), slot.due());
        let position = slot.position();
        let offer = slot.offer_after(next);
        let made = cold(next, slot.cold());
        let mut slot = Slot::of(next.clone(), position, made);
        if let Slot::Open { offered, .. } = &mut slot {
            *offered = offer;
        }
        let summary = match &slot {
            Slot::Open { .. } => None,
            Slot::Ended { summary, .. } => Some(summary.clone()),
        };
        // Most changes do not change the due time.
        if slot.due() != due {
            self.due.remove(&due);
            self.due.insert(slot.due(), id);
        }
        let before = if was_open == summary.is_none() {
            known.insert(slot)
        } else {
            let before = known.remove();
            let to = if was_open {
                &mut self.ended
            } else {
                &mut self.open
            };
            to.insert(id, slot);
            before
        };
        Some(ReplacedSlot {
            was_open,
            position,
            cold: before.into_cold(),
            summary,
        })
    }

    pub(super) fn remove(&mut self, id: TaskId, expected: Revision) -> Option<Slot<C>> {
        let slot = self.find(id).filter(|slot| slot.revision() == expected)?;
        let due = slot.due();
        self.due.remove(&due);
        self.open.remove(&id).or_else(|| self.ended.remove(&id))
    }

    /// Adds up to `limit` due tasks to `found`; returns the next due time.
    pub(super) fn due(
        &self,
        now: Timestamp,
        limit: usize,
        found: &mut Vec<(TaskId, Revision)>,
    ) -> Option<Timestamp> {
        let mut left = limit;
        for ((at, _), id) in &self.due {
            if *at > now || left == 0 {
                return Some(*at);
            }
            found.extend(self.find(*id).map(|slot| (*id, slot.revision())));
            left -= 1;
        }
        None
    }

    /// Adds the number of open tasks of each executor.
    pub(super) fn count_executors(&self, counts: &mut BTreeMap<NodeId, u64>) {
        for slot in self.open.values() {
            if let Slot::Open { task, .. } = slot {
                *counts.entry(task.executor).or_default() += 1;
            }
        }
    }

    pub(super) fn claim(
        &mut self,
        node: NodeId,
        joined: &BTreeSet<NodeId>,
        limit: usize,
        claimed: &mut Vec<Committed<Task>>,
    ) {
        let orphans = self.open.values_mut().filter_map(|slot| match slot {
            Slot::Open { task, offered, .. }
                if task.executor != NodeId::DETACHED && !joined.contains(&task.executor) =>
            {
                let free = offered.is_none_or(|to| !joined.contains(&to));
                free.then(|| {
                    *offered = Some(node);
                    Committed::confirmed_by_backend(task.clone())
                })
            }
            Slot::Open { .. } | Slot::Ended { .. } => None,
        });
        claimed.extend(orphans.take(limit));
    }
}

impl<C> Slot<C> {
    pub(super) fn of(task: Arc<Task>, position: Position, cold: C) -> Self {
        match TaskSummary::of(&task) {
            Some(summary) => Self::Ended {
                summary: Arc::new(summary),
                position,
                cold,
            },
            None => Self::Open {
                task,
                position,
                cold,
                offered: None,
            },
        }
    }

    pub(super) fn owner(&self) -> &Owner {
        match self {
            Self::Open { task, .. } => &task.owner,
            Self::Ended { summary, .. } => &summary.owner,
        }
    }

    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Open { task, .. } => task.revision,
            Self::Ended { summary, .. } => summary.revision,
        }
    }

    pub(super) fn position(&self) -> Position {
        match self {
            Self::Open { position, .. } | Self::Ended { position, .. } => *position,
        }
    }

    pub(super) fn cold(&self) -> &C {
        match self {
            Self::Open { cold, .. } | Self::Ended { cold, .. } => cold,
        }
    }

    pub(super) fn into_cold(self) -> C {
        match self {
            Self::Open { cold, .. } | Self::Ended { cold, .. } => cold,
        }
    }

    /// The node to which the task stays offered when it becomes `next`: an offer ends when a node
    /// takes the task over.
    fn offer_after(&self, next: &Task) -> Option<NodeId> {
        match self {
            Self::Open { task, offered, .. } if task.executor == next.executor => *offered,
            Self::Open { .. } | Self::Ended { .. } => None,
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        match self {
            Self::Open { task, .. } => {
                Snapshot::Open(Committed::confirmed_by_backend(task.clone()))
            }
            Self::Ended { summary, .. } => {
                Snapshot::Ended(Committed::confirmed_by_backend(summary.clone()))
            }
        }
    }

    fn id(&self) -> TaskId {
        match self {
            Self::Open { task, .. } => task.id,
            Self::Ended { summary, .. } => summary.id,
        }
    }

    /// The due time, and the position to order tasks with the same time.
    fn due(&self) -> (Timestamp, Position) {
        match self {
            Self::Open { task, position, .. } => (task.due(), *position),
            Self::Ended {
                summary, position, ..
            } => (summary.expires(), *position),
        }
    }
}
