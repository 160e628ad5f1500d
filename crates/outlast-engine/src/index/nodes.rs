//! The engines that share a store in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::lock;
use crate::engine::Progress;
use crate::id::{NodeId, TaskId};
use crate::runtime::Mutex;
use crate::runtime::atomic::{AtomicU64, Ordering};
use crate::store::{NodeState, NodeStatus, StoreEvent, StoreEvents};

type JoinedNodes = BTreeMap<NodeId, JoinedNode>;

#[derive(Debug)]
struct JoinedNode {
    sender: mpsc::UnboundedSender<StoreEvent>,
    epoch: u64,
    address: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct Nodes {
    joined: Mutex<JoinedNodes>,
    /// The only joined node, if there is one. It has no other node to notify and takes no lock.
    only: OnlyNode,
}

impl Nodes {
    pub(super) fn join(&self, node: NodeId) -> StoreEvents {
        let (sender, events) = mpsc::unbounded_channel();
        let mut joined = lock(&self.joined);
        let before = joined.remove(&node);
        let epoch = before.as_ref().map_or(0, |before| before.epoch) + 1;
        let address = before.and_then(|before| before.address);
        let member = JoinedNode {
            sender,
            epoch,
            address,
        };
        joined.insert(node, member);
        self.only.update(&joined);
        events
    }

    pub(super) fn leave(&self, node: NodeId) {
        let mut joined = lock(&self.joined);
        joined.remove(&node);
        self.only.update(&joined);
        for member in joined.values() {
            // A node whose receiver is dropped is about to leave.
            let _ = member.sender.send(StoreEvent::NodeLeft);
        }
    }

    pub(super) fn joined(&self) -> BTreeSet<NodeId> {
        lock(&self.joined).keys().copied().collect()
    }

    pub(super) fn publish_address(&self, node: NodeId, address: &str) {
        if let Some(member) = lock(&self.joined).get_mut(&node) {
            member.address = Some(address.into());
        }
    }

    /// The joined nodes with these numbers of open tasks.
    pub(super) fn statuses(&self, open_tasks: &BTreeMap<NodeId, u64>) -> Vec<NodeStatus> {
        let joined = lock(&self.joined);
        let statuses = joined.iter().map(|(node, member)| NodeStatus {
            node: *node,
            epoch: member.epoch,
            state: NodeState::Joined,
            address: member.address.clone(),
            lease: None,
            open_tasks: open_tasks.get(node).copied().unwrap_or_default(),
        });
        statuses.collect()
    }

    pub(super) fn notify_others(&self, node: NodeId, id: TaskId) {
        if self.only.is(node) {
            return;
        }
        let joined = lock(&self.joined);
        for (_, member) in joined.iter().filter(|(known, _)| **known != node) {
            let _ = member.sender.send(StoreEvent::TaskChanged(id));
        }
    }

    pub(super) fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        if self.only.is(node) {
            return;
        }
        let joined = lock(&self.joined);
        for (_, member) in joined.iter().filter(|(known, _)| **known != node) {
            let event = StoreEvent::Progress(id, progress.clone());
            let _ = member.sender.send(event);
        }
    }
}

/// The id of the only node plus one, or zero. Node ids have 63 bits, so it fits.
#[derive(Debug, Default)]
struct OnlyNode(AtomicU64);

impl OnlyNode {
    fn update(&self, joined: &JoinedNodes) {
        let mut nodes = joined.keys();
        let only = match (nodes.next(), nodes.next()) {
            (Some(node), None) => node.0.wrapping_add(1),
            _ => 0,
        };
        self.0.store(only, Ordering::Release);
    }

    fn is(&self, node: NodeId) -> bool {
        let only = self.0.load(Ordering::Acquire);
        only != 0 && only == node.0.wrapping_add(1)
    }
}
