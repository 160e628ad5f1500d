//! The engines that share a store in one process.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::lock;
use crate::id::{NodeId, TaskId};
use crate::runtime::Mutex;
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::store::{Feed, News};

type Joined = Vec<(NodeId, mpsc::UnboundedSender<News>)>;

#[derive(Debug, Default)]
pub(super) struct Nodes {
    joined: Mutex<Joined>,
    /// The node that has joined if it is the only one: it has nobody to tell and takes no lock.
    alone: Alone,
}

impl Nodes {
    pub(super) fn join(&self, node: NodeId) -> Feed {
        let (tell, feed) = mpsc::unbounded_channel();
        let mut joined = lock(&self.joined);
        joined.retain(|(known, _)| *known != node);
        joined.push((node, tell));
        self.alone.note(&joined);
        feed
    }

    pub(super) fn leave(&self, node: NodeId) {
        let mut joined = lock(&self.joined);
        joined.retain(|(known, _)| *known != node);
        self.alone.note(&joined);
        for (_, tell) in joined.iter() {
            // A node that stopped listening is about to leave.
            let _ = tell.send(News::Orphans);
        }
    }

    pub(super) fn living(&self) -> BTreeSet<NodeId> {
        lock(&self.joined).iter().map(|(node, _)| *node).collect()
    }

    pub(super) fn tell_others(&self, node: NodeId, id: TaskId) {
        if self.alone.is(node) {
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

/// One more than the number of the only node, or zero. Stores keep node ids in 63 bits, so it fits.
#[derive(Debug, Default)]
struct Alone(AtomicU64);

impl Alone {
    fn note(&self, joined: &Joined) {
        let alone = match &joined[..] {
            [(node, _)] => node.0.wrapping_add(1),
            _ => 0,
        };
        self.0.store(alone, Ordering::Release);
    }

    fn is(&self, node: NodeId) -> bool {
        let alone = self.0.load(Ordering::Acquire);
        alone != 0 && alone == node.0.wrapping_add(1)
    }
}
