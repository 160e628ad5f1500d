//! The nodes that share a store, as [`Store::nodes`](super::Store::nodes) lists them.

use std::sync::Arc;
use std::time::Duration;

use crate::id::NodeId;

/// A node that uses a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// How many times the node has joined. A node that lost its lease joins under the next epoch.
    pub epoch: u64,
    /// Whether other nodes may claim its tasks.
    pub state: NodeState,
    /// The text that the node [published](super::Store::publish_address).
    pub address: Option<Arc<str>>,
    /// The time until its lease lapses, when the list was read. `None` if the store grants no
    /// leases, or if the lease has lapsed.
    pub lease: Option<Duration>,
    /// The number of open tasks that it executes.
    pub open_tasks: u64,
}

/// Whether other nodes may claim the tasks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It is joined, and other nodes may not.
    Joined,
    /// Its lease has lapsed. Other nodes may claim its tasks soon, unless it renews its lease.
    Lapsed,
    /// Its lease was lost. Other nodes may claim its tasks until it joins again.
    Lost,
}

impl NodeState {
    /// The word for tables and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Lapsed => "lapsed",
            Self::Lost => "lost",
        }
    }
}
