//! The changes of all tasks, for a program that shows them. Without a listener, a change costs one
//! load of a counter.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::{Engine, Progress};
use crate::id::TaskId;
use crate::runtime::Mutex;
use crate::runtime::atomic::{AtomicUsize, Ordering};

/// A change of some task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The task was created, changed or removed. The store has its current revision.
    Task(TaskId),
    /// The work of the task reported progress. A call that is not a task reports too.
    Progress(TaskId, Progress),
    /// The receiver was too slow, and this number of changes is lost.
    Missed(u64),
}

/// Receives [`Change`]s from its creation on.
#[derive(Debug)]
pub struct Changes {
    feed: Arc<ChangeFeed>,
    receiver: broadcast::Receiver<Change>,
}

/// The senders of changes.
#[derive(Debug, Default)]
pub(crate) struct ChangeFeed {
    listeners: AtomicUsize,
    /// Made by the first listener.
    sender: Mutex<Option<broadcast::Sender<Change>>>,
}

impl Engine {
    /// The changes of all tasks from now on: those of this engine, and those that the store reports
    /// from other nodes.
    pub fn changes(&self) -> Changes {
        let feed = self.inner.changes.clone();
        let receiver = {
            let mut sender = feed.sender.lock();
            let sender = sender.get_or_insert_with(|| broadcast::channel(CHANGE_CAPACITY).0);
            sender.subscribe()
        };
        feed.listeners.fetch_add(1, Ordering::SeqCst);
        Changes { feed, receiver }
    }

    /// The last progress that the work of a task reported, if it runs in this process.
    pub fn progress(&self, id: TaskId) -> Option<Progress> {
        self.inner.calls.find(id)?.progress()
    }
}

impl Changes {
    /// The next change.
    pub async fn next(&mut self) -> Change {
        match self.receiver.recv().await {
            Ok(change) => change,
            Err(RecvError::Lagged(missed)) => Change::Missed(missed),
            // The feed holds the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.feed.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ChangeFeed {
    /// Publishes that a task was created, changed or removed. Called after the commit, so that a
    /// listener that reads the store finds this revision or a newer one.
    pub(crate) fn task(&self, id: TaskId) {
        self.send(|| Change::Task(id));
    }

    /// Publishes progress of a call.
    pub(crate) fn progress(&self, id: TaskId, progress: &Progress) {
        self.send(|| Change::Progress(id, progress.clone()));
    }

    fn send(&self, change: impl FnOnce() -> Change) {
        if self.listeners.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(sender) = &*self.sender.lock() {
            let _ = sender.send(change());
        }
    }
}

/// How many changes a slow listener may lag behind.
const CHANGE_CAPACITY: usize = 4_096;
