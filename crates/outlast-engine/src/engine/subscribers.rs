//! The subscribers of tasks in this process: waiters for the end, and watchers of all events.
//!
//! A subscriber registers before it reads the store, so that no change is missed between the two
//! (P6).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::event_queue::{EventReceiver, EventSender, event_queue};
use super::{EndedTask, Event};
use crate::id::{IdMap, TaskId};
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::shards::Shards;

#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    shards: Shards<Shard, HasSubscribers>,
}

/// Whether the shard has a subscriber. Most tasks end without one, and then the lock is not taken.
/// Changed under the lock of the shard.
///
/// A subscriber sets the flag, then reads the store. A publisher commits a change, then reads the
/// flag. If the read of the subscriber misses the change, it came before the commit, so the flag
/// was set before the publisher reads it.
#[derive(Debug, Default)]
struct HasSubscribers(AtomicBool);

#[derive(Debug, Default)]
struct Shard {
    by_task: IdMap<TaskSubscribers>,
    /// The last subscriber number. Numbers are unique within the shard.
    last: u64,
}

/// A registration. Dropping it removes the subscriber.
pub(crate) struct Subscription {
    subscribers: Arc<Subscribers>,
    id: TaskId,
    number: u64,
}

/// The subscribers of one task. Most often there is one.
type TaskSubscribers = SmallVec<[Subscriber; 1]>;

#[derive(Debug)]
struct Subscriber {
    number: u64,
    interest: Interest,
}

#[derive(Debug)]
enum Interest {
    End(Option<oneshot::Sender<Option<EndedTask>>>),
    AllEvents(EventSender),
}

impl Subscribers {
    /// Registers a waiter. The receiver gets one message when the task ends or is removed. The
    /// message contains the outcome if the task ended on this node.
    pub(crate) fn subscribe_to_end(
        self: &Arc<Self>,
        id: TaskId,
    ) -> (Subscription, oneshot::Receiver<Option<EndedTask>>) {
        let (sender, received) = oneshot::channel();
        (self.add(id, Interest::End(Some(sender))), received)
    }

    /// Sends all events to the receiver. A slow receiver misses intermediate events.
    pub(crate) fn subscribe_to_events(
        self: &Arc<Self>,
        id: TaskId,
    ) -> (Subscription, EventReceiver) {
        let (sender, receiver) = event_queue();
        (self.add(id, Interest::AllEvents(sender)), receiver)
    }

    pub(crate) fn publish(&self, id: TaskId, event: impl Fn() -> Event) {
        if !self.shards.meta(id).get() {
            return;
        }
        let shard = self.shards.lock(id);
        for subscriber in shard.by_task.get(&id).into_iter().flatten() {
            if let Interest::AllEvents(sender) = &subscriber.interest {
                sender.send(event());
            }
        }
    }

    /// Sends the last `event` to the watchers, closes their streams, and notifies the waiters.
    pub(crate) fn publish_end(
        &self,
        id: TaskId,
        event: impl Fn() -> Event,
        ended_task: impl FnOnce() -> Option<EndedTask>,
    ) {
        let Some(subscribers) = self.take(id) else {
            return;
        };
        for subscriber in &subscribers {
            if let Interest::AllEvents(sender) = &subscriber.interest {
                sender.send(event());
            }
        }
        notify_waiters(subscribers, ended_task().as_ref());
    }

    /// Notifies the waiters, and closes the streams of the watchers.
    pub(crate) fn end_without_outcome(&self, id: TaskId) {
        notify_waiters(self.take(id).unwrap_or_default(), None);
    }

    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.shards.lock(id).by_task.contains_key(&id)
    }

    /// Removes all subscribers.
    pub(crate) fn close(&self) {
        for (mut shard, has_subscribers) in self.shards.lock_each_with_meta() {
            let all = std::mem::take(&mut shard.by_task);
            has_subscribers.update(&shard);
            drop(shard);
            drop(all);
        }
    }

    /// The ids of the tasks with subscribers.
    pub(crate) fn ids(&self) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for shard in self.shards.lock_each() {
            ids.extend(shard.by_task.keys());
        }
        ids
    }

    pub(crate) fn count(&self) -> usize {
        let shards = self.shards.lock_each();
        let listeners =
            shards.map(|shard| shard.by_task.values().map(SmallVec::len).sum::<usize>());
        listeners.sum()
    }

    /// Removes and returns the subscribers of a task.
    fn take(&self, id: TaskId) -> Option<TaskSubscribers> {
        let has_subscribers = self.shards.meta(id);
        if !has_subscribers.get() {
            return None;
        }
        let mut shard = self.shards.lock(id);
        let subscribers = shard.by_task.remove(&id);
        has_subscribers.update(&shard);
        subscribers
    }

    fn add(self: &Arc<Self>, id: TaskId, interest: Interest) -> Subscription {
        let mut shard = self.shards.lock(id);
        shard.last += 1;
        let number = shard.last;
        let subscribers = shard.by_task.entry(id).or_default();
        subscribers.push(Subscriber { number, interest });
        self.shards.meta(id).update(&shard);
        Subscription {
            subscribers: self.clone(),
            id,
            number,
        }
    }
}

impl HasSubscribers {
    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn update(&self, shard: &Shard) {
        self.0.store(!shard.by_task.is_empty(), Ordering::Release);
    }
}

/// Notifies the waiters. Dropping the watchers ends their streams.
fn notify_waiters(subscribers: TaskSubscribers, ended_task: Option<&EndedTask>) {
    for subscriber in subscribers {
        if let Interest::End(Some(sender)) = subscriber.interest {
            let _ = sender.send(ended_task.cloned());
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut shard = self.subscribers.shards.lock(self.id);
        if let Entry::Occupied(mut entry) = shard.by_task.entry(self.id) {
            entry
                .get_mut()
                .retain(|subscriber| subscriber.number != self.number);
            if entry.get().is_empty() {
                entry.remove();
                self.subscribers.shards.meta(self.id).update(&shard);
            }
        }
    }
}
