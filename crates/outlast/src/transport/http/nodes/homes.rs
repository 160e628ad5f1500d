//! The records that name home nodes.
//!
//! A record names a node and its epoch. It is taken over only by compare-and-set, and only after
//! its node has lost that lease, has left, or refuses connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_engine::store::{Record, RecordKey, RecordSwap, StoreError};
use outlast_engine::{NodeId, Owner};
use parking_lot::RwLock;

use super::{Nodes, RemoteNode, now};
use crate::server::{HOME_KIND, home_of_session};

/// Names what has a home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::transport::http) struct HomeKey {
    name: Arc<str>,
    /// `None`: the record is deleted with the session.
    ttl: Option<Duration>,
}

/// The home of a session, a connection or a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::transport::http) enum Home {
    /// This node.
    Here,
    /// Another node, which has a lease.
    At(RemoteNode),
}

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HomeNode {
    pub(super) node: NodeId,
    pub(super) epoch: u64,
}

/// The records that this node has read or written.
#[derive(Default)]
pub(super) struct HomeCache(RwLock<HashMap<HomeKey, CachedHome>>);

#[derive(Clone, Copy)]
struct CachedHome {
    holder: HomeNode,
    read_at: Instant,
}

impl HomeKey {
    /// A legacy session.
    pub(in crate::transport::http) fn session(id: &str) -> Self {
        Self {
            name: home_of_session(id),
            ttl: None,
        }
    }

    /// The connection of `owner` to the server with this runner.
    pub(in crate::transport::http) fn connection(runner: &str, owner: &Owner) -> Self {
        Self {
            name: format!("connection {runner} {}", owner.to_storage()).into(),
            ttl: Some(RECORD_TTL),
        }
    }

    /// Another service next to the endpoints, such as the console of one browser.
    pub(in crate::transport::http) fn page(name: &str) -> Self {
        Self {
            name: format!("page {name}").into(),
            ttl: Some(RECORD_TTL),
        }
    }

    fn record_key(&self) -> RecordKey {
        RecordKey::new(HOME_KIND, self.name.clone())
    }
}

impl Nodes {
    /// The home, if a node with a lease holds it.
    pub(in crate::transport::http) async fn locate(
        &self,
        key: &HomeKey,
    ) -> Result<Option<Home>, StoreError> {
        let list = self.directory.current(self).await?;
        let cached = self.homes.get(key);
        if let Some(home) = cached.and_then(|holder| self.directory.home(&list, holder)) {
            return Ok(Some(home));
        }
        let record = self.engine.store().record(&key.record_key(), now()).await?;
        match record.and_then(|record| HomeNode::decode(&record.bytes)) {
            Some(holder) => self.checked(key, holder).await,
            None => Ok(None),
        }
    }

    /// The home. If no node with a lease holds it, it becomes this node.
    pub(in crate::transport::http) async fn claim(
        &self,
        key: &HomeKey,
    ) -> Result<Home, StoreError> {
        if let Some(home) = self.locate(key).await? {
            return Ok(home);
        }
        loop {
            let store = self.engine.store();
            let record = store.record(&key.record_key(), now()).await?;
            let record = record.map(|record| record.bytes);
            if let Some(holder) = record.as_deref().and_then(HomeNode::decode)
                && let Some(home) = self.checked(key, holder).await?
            {
                return Ok(home);
            }
            // Other nodes take over what belongs to a node whose address they do not know.
            self.published().await?;
            let list = self.directory.current(self).await?;
            let Some(own) = list.own() else {
                // The node joins in a moment.
                return Err(StoreError::Starting);
            };
            let expires = key.ttl.map(|ttl| now().plus(ttl.as_millis() as u64));
            let swap = RecordSwap {
                expected: record,
                record: Record {
                    key: key.record_key(),
                    owner: None,
                    expires,
                    bytes: own.encode().into(),
                },
            };
            if store.swap_record(swap, now()).await? {
                self.homes.insert(key, own);
                return Ok(Home::Here);
            }
        }
    }

    /// Forgets what is cached, because the node that it names refused a request.
    pub(in crate::transport::http) fn forget(&self, key: &HomeKey) {
        self.homes.0.write().remove(key);
    }

    /// The home that a record names. A holder that is not in the list may have joined since the
    /// list was read.
    async fn checked(&self, key: &HomeKey, holder: HomeNode) -> Result<Option<Home>, StoreError> {
        let list = self.directory.current(self).await?;
        let mut home = self.directory.home(&list, holder);
        if home.is_none() {
            let list = self.directory.read(self).await?;
            home = self.directory.home(&list, holder);
        }
        if home.is_some() {
            self.homes.insert(key, holder);
        }
        Ok(home)
    }
}

impl HomeCache {
    pub(super) fn clear(&self) {
        self.0.write().clear();
    }

    fn get(&self, key: &HomeKey) -> Option<HomeNode> {
        let cached = self.0.read().get(key).copied()?;
        (cached.read_at.elapsed() < MAX_CACHE_AGE).then_some(cached.holder)
    }

    fn insert(&self, key: &HomeKey, holder: HomeNode) {
        let mut cached = self.0.write();
        if cached.len() >= MAX_CACHED_HOMES {
            cached.clear();
        }
        let home = CachedHome {
            holder,
            read_at: Instant::now(),
        };
        cached.insert(key.clone(), home);
    }
}

impl HomeNode {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.node.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.epoch.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        let (node, epoch) = bytes.split_at(8);
        let number = |part: &[u8]| u64::from_be_bytes(part.try_into().expect("eight bytes"));
        Some(Self {
            node: NodeId(number(node)),
            epoch: number(epoch),
        })
    }
}

/// How long a record of a connection or a page is kept. Then any node can take it over.
const RECORD_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long a record is cached. A node whose address is wrong notices at most this late that
/// another one has taken its homes over.
const MAX_CACHE_AGE: Duration = Duration::from_secs(10);

/// The maximum of cached records. A full cache is emptied.
const MAX_CACHED_HOMES: usize = 65_536;
