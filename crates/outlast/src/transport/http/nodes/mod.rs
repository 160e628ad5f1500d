//! Several nodes on one store: which node handles a request, and how it gets there.
//!
//! What a node holds only in memory has a *home node*: a legacy session with its streams, a call
//! that waits for the retry of its client, and the connection of an owner to a server with state.
//! A record in the store names the home. A node that receives a request for another home forwards
//! the request there and streams the response back. If the home has lost its lease, has left or
//! refuses connections, the receiving node takes the record over and continues as after a restart.
//! Stored tasks have no home: every node answers requests about them.
//!
//! | where | what |
//! |---|---|
//! | `directory` | the nodes of the store and their addresses |
//! | `homes` | the records that name the home nodes |
//! | `pass` | what the receiving node knows of the caller, sealed for the home |
//! | `forward` | sends a request to another node |
//! | `listener` | accepts requests that other nodes forward |

mod directory;
mod forward;
mod homes;
mod listener;
mod pass;

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::store::StoreError;
use outlast_engine::{Clock, Engine, EngineError, NodeId, SystemClock};
use outlast_wire::Timestamp;
use tokio::sync::watch;

use crate::server::{KeyRing, SessionTable};
use directory::NodeDirectory;
use forward::ForwardClient;
use homes::HomeCache;

pub(super) use directory::RemoteNode;
pub(super) use forward::{ForwardError, ForwardedRequest, end_to_end};
pub(super) use homes::{Home, HomeKey};
pub(super) use listener::NodeListener;
pub(super) use pass::Pass;

/// How other nodes of the same store reach this one.
///
/// The listener for other nodes is separate from that for clients. It accepts only requests that
/// another node of the same store has sealed with the keys in the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeOptions {
    /// The address of the listener for other nodes. Other machines must reach it.
    pub bind: SocketAddr,
    /// The host and port under which the other nodes reach it, if that is not its address.
    pub advertise: Option<String>,
}

/// The nodes of a store, as one of them uses them.
pub(super) struct Nodes {
    engine: Engine,
    keys: KeyRing,
    directory: NodeDirectory,
    homes: HomeCache,
    client: ForwardClient,
    /// Its sessions in memory end when this node loses its lease.
    sessions: Weak<SessionTable>,
    /// Whether the store has the address of this node.
    is_published: watch::Sender<bool>,
}

impl NodeOptions {
    /// A listener for other nodes at `bind`; port 0 is a free port.
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            advertise: None,
        }
    }

    /// Sets the host and port under which the other nodes reach the listener.
    #[must_use]
    pub fn with_advertise(mut self, advertise: impl Into<String>) -> Self {
        self.advertise = Some(advertise.into());
        self
    }
}

impl Nodes {
    pub(in crate::transport::http) fn new(
        engine: Engine,
        sessions: &Arc<SessionTable>,
    ) -> Arc<Self> {
        Arc::new(Self {
            keys: KeyRing::new(engine.store().clone()),
            directory: NodeDirectory::new(engine.clone()),
            homes: HomeCache::default(),
            client: ForwardClient::new(),
            sessions: Arc::downgrade(sessions),
            is_published: watch::Sender::new(false),
            engine,
        })
    }

    /// Publishes the address of the listener for other nodes, once the store is open.
    pub(in crate::transport::http) async fn publish(&self, address: &str) {
        loop {
            match self.engine.publish_address(address).await {
                Ok(()) => {
                    self.is_published.send_replace(true);
                    return;
                }
                Err(EngineError::Store(StoreError::Starting)) => {}
                Err(error) => {
                    tracing::warn!(%error, "could not publish the address of this node; retrying");
                }
            }
            tokio::time::sleep(PUBLISH_RETRY_INTERVAL).await;
        }
    }

    /// Waits until the store has the address of this node, for at most [`PUBLISH_TIMEOUT`].
    async fn published(&self) -> Result<(), StoreError> {
        let mut is_published = self.is_published.subscribe();
        let published = is_published.wait_for(|published| *published);
        match tokio::time::timeout(PUBLISH_TIMEOUT, published).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(StoreError::Starting),
        }
    }

    /// The number of nodes that have a lease.
    pub(in crate::transport::http) async fn count(&self) -> Result<usize, StoreError> {
        Ok(self.directory.current(self).await?.count())
    }

    /// The node with this id, if it is another one and has a lease.
    pub(in crate::transport::http) async fn remote(
        &self,
        node: NodeId,
    ) -> Result<Option<RemoteNode>, StoreError> {
        if node == self.engine.node() {
            return Ok(None);
        }
        let list = self.directory.current(self).await?;
        if let Some(remote) = self.directory.remote(&list, node) {
            return Ok(Some(remote));
        }
        // It may have joined since the list was read.
        let list = self.directory.read(self).await?;
        Ok(self.directory.remote(&list, node))
    }

    /// Ends what this node holds in memory, because other nodes may have taken it over.
    fn lease_lost(&self) {
        tracing::info!("this node lost its lease; its sessions continue at any node");
        self.homes.clear();
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.forget_live();
        }
    }
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// How long a request waits until the address of this node is published.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two attempts to publish the address.
const PUBLISH_RETRY_INTERVAL: Duration = Duration::from_millis(50);
