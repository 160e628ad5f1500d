//! Who wants to hear of a task in this process: those who wait for its end and those who watch it.
//!
//! Registration comes before the look at the store, so that no change falls between the two (P6).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::event_queue::{Mailbox, Slot, mailbox};
use super::{Event, Settled};
use crate::id::{IdMap, TaskId};
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::shards::Shards;

#[derive(Debug, Default)]
pub(crate) struct Topics {
    shards: Shards<Shard, Somebody>,
}

/// Whether anybody wants to hear of a task in this part: most tasks end unheard. Changed under the lock of the part.
///
/// Whoever takes a place looks at the store after that. If a change is not in what it finds there, the store has
/// ordered that look before the change, and so the sign is seen by whoever tells of the change.
#[derive(Debug, Default)]
struct Somebody(AtomicBool);

#[derive(Debug, Default)]
struct Shard {
    of: IdMap<Subscribers>,
    /// The last number given out here: no two who want to hear of a task have the same.
    last: u64,
}

/// A place among those who want to hear. Given up when dropped.
pub(crate) struct Place {
    topics: Arc<Topics>,
    id: TaskId,
    number: u64,
}

/// Those who want to hear of one task: mostly one.
type Subscribers = SmallVec<[Subscriber; 1]>;

#[derive(Debug)]
struct Subscriber {
    number: u64,
    wants: Wants,
}

#[derive(Debug)]
enum Wants {
    End(Option<oneshot::Sender<Option<Settled>>>),
    Everything(Slot),
}

impl Topics {
    /// Tells the receiver when the task has ended or is gone, with its outcome where that is at hand.
    pub(crate) fn end_of(
        self: &Arc<Self>,
        id: TaskId,
    ) -> (Place, oneshot::Receiver<Option<Settled>>) {
        let (tell, told) = oneshot::channel();
        (self.enter(id, Wants::End(Some(tell))), told)
    }

    /// Tells the receiver everything; one who does not keep up misses steps.
    pub(crate) fn everything_of(self: &Arc<Self>, id: TaskId) -> (Place, Mailbox) {
        let (slot, mailbox) = mailbox();
        (self.enter(id, Wants::Everything(slot)), mailbox)
    }

    pub(crate) fn publish(&self, id: TaskId, event: impl Fn() -> Event) {
        if !self.shards.sign(id).is_there() {
            return;
        }
        let shard = self.shards.of(id);
        for subscriber in shard.of.get(&id).into_iter().flatten() {
            if let Wants::Everything(slot) = &subscriber.wants {
                slot.put(event());
            }
        }
    }

    /// Tells those who watch of the last `event`, closes their streams, and answers those who wait for the end.
    pub(crate) fn end(
        &self,
        id: TaskId,
        event: impl Fn() -> Event,
        settled: impl FnOnce() -> Option<Settled>,
    ) {
        let Some(subscribers) = self.dismiss(id) else {
            return;
        };
        for subscriber in &subscribers {
            if let Wants::Everything(slot) = &subscriber.wants {
                slot.put(event());
            }
        }
        answer(subscribers, settled().as_ref());
    }

    /// Answers those who wait for the end, and closes the streams of those who watch.
    pub(crate) fn settle(&self, id: TaskId, settled: Option<&Settled>) {
        answer(self.dismiss(id).unwrap_or_default(), settled);
    }

    pub(crate) fn contains(&self, id: TaskId) -> bool {
        self.shards.of(id).of.contains_key(&id)
    }

    /// Nobody hears anything any more.
    pub(crate) fn close(&self) {
        for (mut shard, somebody) in self.shards.each_signed() {
            let all = std::mem::take(&mut shard.of);
            somebody.note(&shard);
            drop(shard);
            drop(all);
        }
    }

    /// The tasks that somebody here wants to hear of.
    pub(crate) fn ids(&self) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for shard in self.shards.each() {
            ids.extend(shard.of.keys());
        }
        ids
    }

    pub(crate) fn listeners(&self) -> usize {
        let shards = self.shards.each();
        let listeners = shards.map(|shard| shard.of.values().map(SmallVec::len).sum::<usize>());
        listeners.sum()
    }

    /// Takes out whoever wants to hear of a task.
    fn dismiss(&self, id: TaskId) -> Option<Subscribers> {
        let somebody = self.shards.sign(id);
        if !somebody.is_there() {
            return None;
        }
        let mut shard = self.shards.of(id);
        let subscribers = shard.of.remove(&id);
        somebody.note(&shard);
        subscribers
    }

    fn enter(self: &Arc<Self>, id: TaskId, wants: Wants) -> Place {
        let mut shard = self.shards.of(id);
        shard.last += 1;
        let number = shard.last;
        let subscribers = shard.of.entry(id).or_default();
        subscribers.push(Subscriber { number, wants });
        self.shards.sign(id).note(&shard);
        Place {
            topics: self.clone(),
            id,
            number,
        }
    }
}

impl Somebody {
    fn is_there(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn note(&self, shard: &Shard) {
        self.0.store(!shard.of.is_empty(), Ordering::Release);
    }
}

/// Answers those who wait for the end. With the others their streams end.
fn answer(subscribers: Subscribers, settled: Option<&Settled>) {
    for subscriber in subscribers {
        if let Wants::End(Some(tell)) = subscriber.wants {
            let _ = tell.send(settled.cloned());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shard = self.topics.shards.of(self.id);
        if let Entry::Occupied(mut entry) = shard.of.entry(self.id) {
            entry
                .get_mut()
                .retain(|subscriber| subscriber.number != self.number);
            if entry.get().is_empty() {
                entry.remove();
                self.topics.shards.sign(self.id).note(&shard);
            }
        }
    }
}
