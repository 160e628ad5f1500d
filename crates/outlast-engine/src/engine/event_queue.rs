//! The events that one watcher has not taken yet. Bounded: a slow one misses steps, never the
//! newest.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Event;
use crate::id::Revision;
use crate::runtime::{Mutex, MutexGuard};

/// Where a watcher takes its events.
#[derive(Debug)]
pub(crate) struct EventReceiver(Arc<Shared>);

/// Where events are put in. Dropped, it closes the mailbox.
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
    /// Of the task as it was put in last.
    newest: Option<Revision>,
    closed: bool,
}

/// An empty mailbox and its slot.
pub(crate) fn event_queue() -> (EventSender, EventReceiver) {
    let shared = Arc::new(Shared::default());
    (EventSender(shared.clone()), EventReceiver(shared))
}

impl EventReceiver {
    /// Forgets what is not newer than `seen`, here and on its way.
    pub(crate) fn skip_up_to(&self, seen: Revision) {
        let mut queue = self.0.lock();
        queue.newest = queue.newest.max(Some(seen));
        queue
            .events
            .retain(|event| revision(event).is_none_or(|revision| revision > seen));
    }

    /// The next event; `None` when there will be no more.
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
            // Kept until somebody waits, so that nothing falls between the look and the wait.
            self.0.ready.notified().await;
        }
    }
}

impl EventSender {
    /// Puts an event in, unless it tells of a task older than what is known already: changes are
    /// committed one after the other, but those who made them may be overtaken on the way here.
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

/// The revision of the task that an event tells of.
fn revision(event: &Event) -> Option<Revision> {
    match event {
        Event::Stored(task) => Some(task.revision),
        Event::Plain(task) => Some(task.revision),
        Event::Progress(_) | Event::Log(_) | Event::RunsAsTask => None,
    }
}

/// How many events a slow watcher may be behind.
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
    async fn a_crowd_of_small_news_does_not_hide_a_question() {
        let first = task(1);
        let received = Arc::new(first.clone()).apply(request_input(&first, "who"), CREATED);
        let step = received.unwrap();
        let Next::Stored(asking, _) = step.next else {
            panic!("it lives");
        };
        let (sender, mut receiver) = event_queue();
        for n in 0..1_000 {
            sender.send(progress(f64::from(n)));
        }
        sender.send(Event::Plain(asking));
        for n in 1_000..2_000 {
            sender.send(progress(f64::from(n)));
        }
        // What was overtaken does not come after what overtook it.
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
