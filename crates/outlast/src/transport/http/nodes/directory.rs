//! The nodes of the store: which of them have a lease, and where they are reached.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_engine::store::{NodeState, StoreError};
use outlast_engine::{Engine, NodeId};
use parking_lot::RwLock;

use super::Nodes;
use super::homes::{Home, HomeNode};

/// The last list of nodes that was read.
pub(super) struct NodeDirectory {
    engine: Engine,
    last: RwLock<Option<Arc<NodeList>>>,
    /// Nodes that refused a connection, and when. Their processes have ended, so their homes are
    /// taken over before their leases lapse.
    refused: RwLock<HashMap<NodeId, Instant>>,
    /// Locked while the list is read, so that concurrent requests read it once.
    reading: tokio::sync::Mutex<()>,
}

/// The nodes that had a lease when the list was read.
pub(super) struct NodeList {
    read_at: Instant,
    own: NodeId,
    nodes: HashMap<NodeId, LeasedNode>,
}

struct LeasedNode {
    epoch: u64,
    /// `None` until the node has published it.
    address: Option<Arc<str>>,
}

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::transport::http) struct RemoteNode {
    pub(in crate::transport::http) node: NodeId,
    /// Host and port of its listener for other nodes.
    pub(in crate::transport::http) address: Arc<str>,
}

impl NodeDirectory {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            last: RwLock::default(),
            refused: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// A list that is at most [`MAX_CACHE_AGE`] old.
    pub(super) async fn current(&self, nodes: &Nodes) -> Result<Arc<NodeList>, StoreError> {
        self.newer_than(Instant::now().checked_sub(MAX_CACHE_AGE), nodes)
            .await
    }

    /// Records that nothing listens at the address of a node.
    pub(super) fn mark_refused(&self, node: NodeId) {
        let mut refused = self.refused.write();
        refused.retain(|_, at| at.elapsed() < REFUSAL_CACHE_TIME);
        refused.insert(node, Instant::now());
    }

    fn is_refused(&self, node: NodeId) -> bool {
        let refused = self.refused.read();
        refused
            .get(&node)
            .is_some_and(|at| at.elapsed() < REFUSAL_CACHE_TIME)
    }

    /// The home that `holder` names; `None` if the holder has lost its lease since, or has ended.
    pub(super) fn home(&self, list: &NodeList, holder: HomeNode) -> Option<Home> {
        let home = list.home(holder)?;
        (!self.is_refused(holder.node)).then_some(home)
    }

    /// Another node that has a lease and has not ended.
    pub(super) fn remote(&self, list: &NodeList, node: NodeId) -> Option<RemoteNode> {
        list.remote(node).filter(|_| !self.is_refused(node))
    }

    /// A list that is read now.
    pub(super) async fn read(&self, nodes: &Nodes) -> Result<Arc<NodeList>, StoreError> {
        self.newer_than(Some(Instant::now()), nodes).await
    }

    /// A list that was read at `time` or later. The clock counts while this process is paused.
    async fn newer_than(
        &self,
        time: Option<Instant>,
        nodes: &Nodes,
    ) -> Result<Arc<NodeList>, StoreError> {
        let known = || {
            let last = self.last.read().clone();
            last.filter(|list| time.is_none_or(|time| list.read_at >= time))
        };
        if let Some(list) = known() {
            return Ok(list);
        }
        let _reading = self.reading.lock().await;
        if let Some(list) = known() {
            return Ok(list);
        }
        let read_at = Instant::now();
        let listed = self.engine.store().nodes().await?;
        // Until a node is marked as lost, no other node takes anything over from it.
        let leased = listed
            .into_iter()
            .filter(|node| node.state != NodeState::Lost);
        let leased = leased.map(|node| {
            let leased = LeasedNode {
                epoch: node.epoch,
                address: node.address,
            };
            (node.node, leased)
        });
        let list = Arc::new(NodeList {
            read_at,
            own: self.engine.node(),
            nodes: leased.collect(),
        });
        let before = self.last.write().replace(list.clone());
        if before.is_some_and(|before| before.own().is_some() && before.own() != list.own()) {
            nodes.lease_lost();
        }
        Ok(list)
    }
}

impl NodeList {
    /// This node as the holder of a home; `None` while it has no lease.
    pub(super) fn own(&self) -> Option<HomeNode> {
        let node = self.own;
        let epoch = self.nodes.get(&node)?.epoch;
        Some(HomeNode { node, epoch })
    }

    /// The home that `holder` names; `None` if the holder has lost its lease since.
    fn home(&self, holder: HomeNode) -> Option<Home> {
        let leased = self.nodes.get(&holder.node)?;
        if leased.epoch != holder.epoch {
            None
        } else if holder.node == self.own {
            Some(Home::Here)
        } else {
            self.remote(holder.node).map(Home::At)
        }
    }

    /// The other node with this id.
    fn remote(&self, node: NodeId) -> Option<RemoteNode> {
        let address = self.nodes.get(&node)?.address.clone()?;
        Some(RemoteNode { node, address })
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// How long a node that refused a connection counts as ended. Then its lease has lapsed.
const REFUSAL_CACHE_TIME: Duration = Duration::from_secs(15);

/// How old the list may be. A node notices at most this late that it lost its lease.
const MAX_CACHE_AGE: Duration = Duration::from_secs(1);
