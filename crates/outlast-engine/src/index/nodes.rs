//! The engines that share a store in one process.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::lock;
use crate::id::{NodeId, TaskId};
use crate::store::{Feed, News};

#[derive(Debug, Default)]
pub(super) struct Nodes {
    joined: Mutex<Vec<(NodeId, mpsc::UnboundedSender<News>)>>,
    /// How many have joined: the usual one has nobody to tell and takes no lock.
    count: AtomicUsize,
}

impl Nodes {
    pub(super) fn join(&self, node: NodeId) -> Feed {
        let (tell, feed) = mpsc::unbounded_channel();
        let mut joined = lock(&self.joined);
        joined.retain(|(known, _)| *known != node);
        joined.push((node, tell));
        self.count.store(joined.len(), Ordering::Release);
        feed
    }

    pub(super) fn leave(&self, node: NodeId) {
        let mut joined = lock(&self.joined);
        joined.retain(|(known, _)| *known != node);
        self.count.store(joined.len(), Ordering::Release);
        for (_, tell) in joined.iter() {
            // A node that stopped listening is about to leave.
            let _ = tell.send(News::Orphans);
        }
    }

    pub(super) fn living(&self) -> BTreeSet<NodeId> {
        lock(&self.joined).iter().map(|(node, _)| *node).collect()
    }

    pub(super) fn tell_all(&self, id: TaskId) {
        for (_, tell) in lock(&self.joined).iter() {
            let _ = tell.send(News::Changed(id));
        }
    }

    pub(super) fn tell_others(&self, node: NodeId, id: TaskId) {
        if self.count.load(Ordering::Acquire) < 2 {
            return;
        }
        for (_, tell) in lock(&self.joined)
            .iter()
            .filter(|(known, _)| *known != node)
        {
            let _ = tell.send(News::Changed(id));
        }
    }
}
