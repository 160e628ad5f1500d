//! The engines that share a store in one process.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::lock;
use crate::id::{NodeId, TaskId};
use crate::runtime::Mutex;
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::store::{StoreEvent, StoreEvents};

type Senders = Vec<(NodeId, mpsc::UnboundedSender<StoreEvent>)>;

#[derive(Debug, Default)]
pub(super) struct Nodes {
    senders: Mutex<Senders>,
    /// The only joined node, if there is one. It has no other node to notify and takes no lock.
    only: OnlyNode,
}

impl Nodes {
    pub(super) fn join(&self, node: NodeId) -> StoreEvents {
        let (sender, events) = mpsc::unbounded_channel();
        let mut joined = lock(&self.senders);
        joined.retain(|(known, _)| *known != node);
        joined.push((node, sender));
        self.only.update(&joined);
        events
    }

    pub(super) fn leave(&self, node: NodeId) {
        let mut joined = lock(&self.senders);
        joined.retain(|(known, _)| *known != node);
        self.only.update(&joined);
        for (_, sender) in joined.iter() {
            // A node whose receiver is dropped is about to leave.
            let _ = sender.send(StoreEvent::NodeLeft);
        }
    }

    pub(super) fn joined(&self) -> BTreeSet<NodeId> {
        lock(&self.senders).iter().map(|(node, _)| *node).collect()
    }

    pub(super) fn notify_others(&self, node: NodeId, id: TaskId) {
        if self.only.is(node) {
            return;
        }
        for (_, sender) in lock(&self.senders)
            .iter()
            .filter(|(known, _)| *known != node)
        {
            let _ = sender.send(StoreEvent::TaskChanged(id));
        }
    }
}

/// The id of the only node plus one, or zero. Node ids have 63 bits, so it fits.
#[derive(Debug, Default)]
struct OnlyNode(AtomicU64);

impl OnlyNode {
    fn update(&self, joined: &Senders) {
        let only = match &joined[..] {
            [(node, _)] => node.0.wrapping_add(1),
            _ => 0,
        };
        self.0.store(only, Ordering::Release);
    }

    fn is(&self, node: NodeId) -> bool {
        let only = self.0.load(Ordering::Acquire);
        only != 0 && only == node.0.wrapping_add(1)
    }
}
