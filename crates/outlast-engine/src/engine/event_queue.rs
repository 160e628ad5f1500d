//! The events that one watcher has not received yet. The queue is bounded: a slow watcher misses
//! intermediate events, never the newest.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Event;
use crate::id::Revision;
use crate::runtime::{Mutex, MutexGuard};

/// The receiver of a watcher.
#[derive(Debug)]
pub(crate) struct EventReceiver(Arc<Shared>);

/// The sender. Dropping it closes the queue.
#[derive(Debug)]
pub(crate) struct EventSender(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    /// The newest revision of the task that was sent.
    newest: Option<Revision>,
    closed: bool,
}

/// Returns an empty queue.
pub(crate) fn event_queue() -> (EventSender, EventReceiver) {
    let shared = Arc::new(Shared::default());
    (EventSender(shared.clone()), EventReceiver(shared))
}

impl EventReceiver {
    /// Drops events up to revision `seen`, those in the queue and later ones.
    pub(crate) fn skip_up_to(&self, seen: Revision) {
        let mut queue = self.0.lock();
        queue.newest = queue.newest.max(Some(seen));
        queue
            .events
            .retain(|event| revision(event).is_none_or(|revision| revision > seen));
    }

    /// Returns the next event, or `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut queue = self.0.lock();
                if let Some(event) = queue.events.pop_front() {
                    return Some(event);
                }
                if queue.closed {
                    return None;
                }
            }
            // `Notify` stores one permit, so no event is missed between the check and the wait.
            self.0.ready.notified().await;
        }
    }
}

impl EventSender {
    /// Adds an event, unless its task is older than one that was added: changes are committed in
    /// order, but their senders may arrive here in another order.
    pub(crate) fn send(&self, event: Event) {
        let mut queue = self.0.lock();
        if let Some(revision) = revision(&event) {
            if queue.newest.is_some_and(|newest| newest >= revision) {
                return;
            }
            queue.newest = Some(revision);
        }
        if queue.events.len() >= MAX_QUEUED_EVENTS {
            let least = queue.events.iter().position(|old| revision(old).is_none());
            queue.events.remove(least.unwrap_or(0));
        }
        queue.events.push_back(event);
        drop(queue);
        self.0.ready.notify_one();
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.ready.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

/// The revision of the task in an event.
fn revision(event: &Event) -> Option<Revision> {
    match event {
        Event::Stored(task) => Some(task.revision),
        Event::Plain(task) => Some(task.revision),
        Event::Progress(_) | Event::Log(_) | Event::RunsAsTask => None,
    }
}

/// The maximum number of events that wait for a slow watcher.
const MAX_QUEUED_EVENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::Progress;
    use super::*;
    use crate::laws::fixtures::{CREATED, request_input, task};
    use crate::transition::Next;

    fn progress(done: f64) -> Event {
        Event::Progress(Progress {
            done,
            total: None,
            message: None,
        })
    }

    #[tokio::test]
    async fn many_small_events_do_not_hide_an_input_request() {
        let first = task(1);
        let received = Arc::new(first.clone()).apply(request_input(&first, "who"), CREATED);
        let step = received.unwrap();
        let Next::Stored(asking, _) = step.next else {
            panic!("the task is open");
        };
        let (sender, mut receiver) = event_queue();
        for n in 0..1_000 {
            sender.send(progress(f64::from(n)));
        }
        sender.send(Event::Plain(asking));
        for n in 1_000..2_000 {
            sender.send(progress(f64::from(n)));
        }
        // An overtaken event is not delivered after the newer one.
        sender.send(Event::Plain(Arc::new(first)));
        drop(sender);
        let (mut states, mut events) = (Vec::new(), 0);
        while let Some(event) = receiver.next().await {
            events += 1;
            states.extend(revision(&event));
        }
        assert_eq!(states, [Revision(2)]);
        assert_eq!(events, MAX_QUEUED_EVENTS);
    }
}
