//! A simple store: one lock, one map, and a scan of all tasks for every request.
//!
//! It shares no code with the indexes of real stores, so that a comparison finds errors in those.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::engine::Progress;
use outlast_engine::store::{
    DueTasks, Filter, Health, Insert, InsertResult, NodeState, NodeStatus, Page, Position, Reason,
    Record, RecordKey, RecordSwap, RecordWrite, Replace, Snapshot, StoreEvent, StoreEvents,
    StoreFuture, TaskSummary, Usage,
};
use outlast_engine::{Committed, NodeId, Owner, Revision, Scope, Store, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

/// A store to compare others with.
#[derive(Debug)]
pub struct ModelStore {
    world: Mutex<Content>,
    health: watch::Sender<Health>,
}

/// The content of the store.
#[derive(Debug, Default)]
struct Content {
    tasks: BTreeMap<TaskId, Entry>,
    records: BTreeMap<RecordKey, Record>,
    nodes: BTreeMap<NodeId, JoinedNode>,
    /// The number of tasks that were added so far.
    added: u64,
}

#[derive(Debug)]
struct JoinedNode {
    sender: mpsc::UnboundedSender<StoreEvent>,
    epoch: u64,
    address: Option<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    task: Task,
    body: Option<Raw>,
    /// Its number in the order of insertion.
    number: u64,
    offered: Option<NodeId>,
}

impl ModelStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            world: Mutex::default(),
            health: watch::Sender::new(Health::Ready),
        }
    }

    fn world(&self) -> Result<MutexGuard<'_, Content>, StoreError> {
        if *self.health.borrow() == Health::Closed {
            return Err(StoreError::Unavailable(Reason::new("it was closed")));
        }
        Ok(self.world.lock())
    }
}

impl Default for ModelStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Content {
    fn reachable(&self, scope: &Scope, id: TaskId) -> Option<&Entry> {
        let entry = self.tasks.get(&id)?;
        scope.includes(&entry.task.owner).then_some(entry)
    }

    fn usage(&self, owner: &Owner) -> Usage {
        let count = |test: &dyn Fn(&Entry) -> bool| {
            self.tasks.values().filter(|entry| test(entry)).count() as u64
        };
        let own = |entry: &Entry| entry.task.owner == *owner;
        Usage {
            owner_open: count(&|entry| own(entry) && entry.is_open()) as u32,
            owner_retained: count(&own) as u32,
            open: count(&Entry::is_open),
            retained: count(&|_| true),
        }
    }

    fn write(&mut self, records: Vec<RecordWrite>) {
        for write in records {
            match write {
                RecordWrite::Put(record) => self.records.insert(record.key.clone(), record),
                RecordWrite::Delete(key) => self.records.remove(&key),
            };
        }
    }

    fn notify_others(&self, node: NodeId, event: StoreEvent) {
        for (_, member) in self.nodes.iter().filter(|(known, _)| **known != node) {
            // A node that stopped listening is about to leave.
            let _ = member.sender.send(event.clone());
        }
    }
}

impl Entry {
    fn is_open(&self) -> bool {
        self.task.state.ending().is_none()
    }

    fn snapshot(&self) -> Snapshot {
        match TaskSummary::of(&self.task) {
            Some(summary) => Snapshot::Ended(Committed::confirmed_by_backend(summary)),
            None => Snapshot::Open(committed(&self.task)),
        }
    }
}

impl ModelStore {
    fn add(&self, insert: Insert) -> Result<InsertResult, StoreError> {
        let mut world = self.world()?;
        let Insert {
            task,
            quota,
            records,
        } = insert;
        if world.tasks.contains_key(&task.id) {
            return Err(StoreError::Exists(task.id));
        }
        let known = world.tasks.values().find(|entry| {
            let same_key = entry.task.request_key == task.request_key;
            task.request_key.is_some() && same_key && entry.task.owner == task.owner
        });
        if let Some(known) = known {
            return Ok(InsertResult::Existing(known.task.id));
        }
        let (owner, used) = (task.owner.clone(), world.usage(&task.owner));
        if used.retained >= quota.retained {
            let limit = quota.retained;
            return Err(StoreError::Full { limit });
        }
        if used.open >= quota.open {
            let limit = quota.open;
            return Err(StoreError::Busy { limit });
        }
        if used.owner_open >= quota.owner_open {
            let limit = quota.owner_open;
            return Err(StoreError::OwnerBusy { owner, limit });
        }
        if used.owner_retained >= quota.owner_retained {
            let limit = quota.owner_retained;
            return Err(StoreError::OwnerFull { owner, limit });
        }
        world.added += 1;
        let entry = Entry {
            task: Task::clone(&task),
            body: None,
            number: world.added,
            offered: None,
        };
        world.tasks.insert(task.id, entry);
        world.write(records);
        Ok(InsertResult::New(committed(&task)))
    }

    fn change(&self, replace: Replace) -> Result<Committed<Task>, StoreError> {
        let mut world = self.world()?;
        let (id, expected) = (replace.next.id, replace.expected);
        let entry = world.tasks.get_mut(&id);
        let Some(entry) = entry.filter(|entry| entry.task.revision == expected) else {
            return Err(StoreError::Conflict { id, expected });
        };
        if entry.task.executor != replace.next.executor {
            entry.offered = None;
        }
        entry.task = Task::clone(&replace.next);
        if replace.body.is_some() {
            entry.body = replace.body;
        }
        let replies = committed(&entry.task);
        world.write(replace.records);
        world.notify_others(replace.node, StoreEvent::TaskChanged(id));
        Ok(replies)
    }
}

#[async_trait]
impl Store for ModelStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        StoreFuture::ready(self.add(insert))
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        StoreFuture::ready(self.change(replace))
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut world = self.world()?;
        let mut gone = Vec::new();
        for (id, expected) in tasks {
            let found = world.tasks.get(&id);
            if found.is_some_and(|entry| entry.task.revision == expected) {
                world.tasks.remove(&id);
                world.notify_others(node, StoreEvent::TaskChanged(id));
                gone.push(id);
            }
        }
        Ok(gone)
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        let world = self.world();
        StoreFuture::ready(world.map(|world| world.reachable(scope, id).map(Entry::snapshot)))
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        let world = self.world()?;
        Ok(world
            .reachable(scope, id)
            .map(|entry| committed(&entry.task)))
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        StoreFuture::ready(self.world().map(|world| {
            let entry = world.reachable(scope, id)?;
            entry.body.clone()
        }))
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let world = self.world()?;
        let mut own: Vec<_> = world
            .tasks
            .values()
            .filter(|entry| entry.task.owner == *owner)
            .filter(|entry| after.is_none_or(|after| entry.number < after.0))
            .collect();
        own.sort_by_key(|entry| std::cmp::Reverse(entry.number));
        let shown = &own[..own.len().min(limit)];
        let more = own.len() > shown.len();
        Ok(Page {
            tasks: shown.iter().map(|entry| entry.snapshot()).collect(),
            next: shown
                .last()
                .filter(|_| more)
                .map(|last| Position(last.number)),
        })
    }

    async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let world = self.world()?;
        let mut found: Vec<_> = world
            .tasks
            .values()
            .filter(|entry| after.is_none_or(|after| entry.number < after.0))
            .filter(|entry| filter.matches(&entry.snapshot()))
            .collect();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.number));
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        Ok(Page {
            next: last.map(|last| Position(last.number)),
            tasks: found.iter().map(|entry| entry.snapshot()).collect(),
        })
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        let world = self.world()?;
        let mut all: Vec<_> = world.tasks.values().map(|entry| &entry.task).collect();
        all.sort_by_key(|task| task.due());
        let now_due = all.iter().filter(|task| task.due() <= now).count();
        let (named, left) = all.split_at(now_due.min(limit));
        Ok(DueTasks {
            tasks: named.iter().map(|task| (task.id, task.revision)).collect(),
            next: left.first().map(|task| task.due()),
        })
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        let mut world = self.world()?;
        let Content { tasks, nodes, .. } = &mut *world;
        let has_joined = |node: &NodeId| nodes.contains_key(node);
        let orphans = tasks.values_mut().filter(|entry| {
            let offered = entry.offered.as_ref().is_some_and(has_joined);
            let detached = entry.task.executor == NodeId::DETACHED;
            entry.is_open() && !detached && !has_joined(&entry.task.executor) && !offered
        });
        let offers = orphans.take(limit).map(|entry| {
            entry.offered = Some(node);
            committed(&entry.task)
        });
        Ok(offers.collect())
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        Ok(self.world()?.usage(owner))
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.world()?.write(records);
        Ok(())
    }

    async fn swap_record(&self, swap: RecordSwap, now: Timestamp) -> Result<bool, StoreError> {
        let mut world = self.world()?;
        let stored = world.records.get(&swap.record.key);
        let stored = stored.filter(|record| record.exists_at(now));
        let matches = stored.map(|record| &record.bytes) == swap.expected.as_ref();
        if matches {
            world.write(vec![RecordWrite::Put(swap.record)]);
        }
        Ok(matches)
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        let world = self.world()?;
        Ok(world
            .records
            .get(key)
            .filter(|record| record.exists_at(now))
            .cloned())
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        let world = self.world()?;
        let found = world.records.values().filter(|record| {
            let owned = owner.is_none() || record.owner.as_ref() == owner;
            &*record.key.kind == kind && owned && record.exists_at(now)
        });
        Ok(found.cloned().collect())
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        let (sender, feed) = mpsc::unbounded_channel();
        let mut world = self.world()?;
        let before = world.nodes.remove(&node);
        let member = JoinedNode {
            sender,
            epoch: before.as_ref().map_or(1, |before| before.epoch + 1),
            address: before.and_then(|before| before.address),
        };
        world.nodes.insert(node, member);
        Ok(feed)
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let mut world = self.world()?;
        world.nodes.remove(&node);
        world.notify_others(node, StoreEvent::NodeLeft);
        Ok(())
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        if let Some(member) = self.world()?.nodes.get_mut(&node) {
            member.address = Some(address.into());
        }
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let world = self.world()?;
        let open_of = |node| {
            let tasks = world.tasks.values();
            tasks
                .filter(|entry| entry.is_open() && entry.task.executor == node)
                .count() as u64
        };
        let statuses = world.nodes.iter().map(|(node, member)| NodeStatus {
            node: *node,
            epoch: member.epoch,
            state: NodeState::Joined,
            address: member.address.clone(),
            lease: None,
            open_tasks: open_of(*node),
        });
        Ok(statuses.collect())
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        if let Ok(world) = self.world() {
            world.notify_others(node, StoreEvent::Progress(id, progress.clone()));
        }
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.health.send_replace(Health::Closed);
        Ok(())
    }
}

fn committed(task: &Task) -> Committed<Task> {
    Committed::confirmed_by_backend(task.clone())
}

#[cfg(test)]
mod tests {
    outlast_engine::store_laws!(async { super::ModelStore::new() });
}
