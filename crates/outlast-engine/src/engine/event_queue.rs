//! The events that one watcher has not taken yet. Bounded: a slow one misses steps, never the newest.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Event;
use crate::id::Revision;
use crate::runtime::{Mutex, MutexGuard};

/// Where a watcher takes its events.
#[derive(Debug)]
pub(crate) struct Mailbox(Arc<Shared>);

/// Where events are put in. Dropped, it closes the mailbox.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    mail: Mutex<Mail>,
    rung: Notify,
}

#[derive(Debug, Default)]
struct Mail {
    events: VecDeque<Event>,
    /// Of the task as it was put in last.
    newest: Option<Revision>,
    closed: bool,
}

/// An empty mailbox and its slot.
pub(crate) fn mailbox() -> (Slot, Mailbox) {
    let shared = Arc::new(Shared::default());
    (Slot(shared.clone()), Mailbox(shared))
}

impl Mailbox {
    /// Forgets what is not newer than `seen`, here and on its way.
    pub(crate) fn has_seen(&self, seen: Revision) {
        let mut mail = self.0.mail();
        mail.newest = mail.newest.max(Some(seen));
        mail.events
            .retain(|event| revision(event).is_none_or(|told| told > seen));
    }

    /// The next event; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut mail = self.0.mail();
                if let Some(event) = mail.events.pop_front() {
                    return Some(event);
                }
                if mail.closed {
                    return None;
                }
            }
            // Kept until somebody waits, so that nothing falls between the look and the wait.
            self.0.rung.notified().await;
        }
    }
}

impl Slot {
    /// Puts an event in, unless it tells of a task older than what is known already: changes are
    /// committed one after the other, but those who made them may be overtaken on the way here.
    pub(crate) fn put(&self, event: Event) {
        let mut mail = self.0.mail();
        if let Some(revision) = revision(&event) {
            if mail.newest.is_some_and(|newest| newest >= revision) {
                return;
            }
            mail.newest = Some(revision);
        }
        if mail.events.len() >= BACKLOG {
            let least = mail.events.iter().position(|old| revision(old).is_none());
            mail.events.remove(least.unwrap_or(0));
        }
        mail.events.push_back(event);
        drop(mail);
        self.0.rung.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.mail().closed = true;
        self.0.rung.notify_one();
    }
}

impl Shared {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock()
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
const BACKLOG: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::Progress;
    use super::*;
    use crate::laws::fixtures::{CREATED, ask, task};
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
        let told = Arc::new(first.clone()).apply(ask(&first, "who"), CREATED);
        let step = told.unwrap();
        let Next::Stored(asking, _) = step.next else {
            panic!("it lives");
        };
        let (slot, mut mailbox) = mailbox();
        for n in 0..1_000 {
            slot.put(progress(f64::from(n)));
        }
        slot.put(Event::Plain(asking));
        for n in 1_000..2_000 {
            slot.put(progress(f64::from(n)));
        }
        // What was overtaken does not come after what overtook it.
        slot.put(Event::Plain(Arc::new(first)));
        drop(slot);
        let (mut states, mut events) = (Vec::new(), 0);
        while let Some(event) = mailbox.next().await {
            events += 1;
            states.extend(revision(&event));
        }
        assert_eq!(states, [Revision(2)]);
        assert_eq!(events, BACKLOG);
    }
}
