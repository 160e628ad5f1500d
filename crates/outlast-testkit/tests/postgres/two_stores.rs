//! Every law of stores with two stores on one schema, as two processes have: an operation goes to one
//! store, the next one to the other. So quotas, request keys, revisions and records hold over nodes.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use outlast_engine::engine::Progress;
use outlast_engine::store::{Health, StoreEvents};
use outlast_engine::{Committed, NodeId, Store, StoreError, Task, TaskId, forward_store};
use outlast_store::Postgres;
use outlast_testkit::PostgresServer;
use tokio::sync::watch;

use crate::opened;

struct TwoStores {
    stores: [Postgres; 2],
    operations: AtomicUsize,
}

impl TwoStores {
    async fn open(url: &str) -> Self {
        Self {
            stores: [opened(url).await, opened(url).await],
            operations: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> &Postgres {
        &self.stores[self.operations.fetch_add(1, Ordering::Relaxed) % 2]
    }

    /// The store that a node joins through.
    fn of(&self, node: NodeId) -> &Postgres {
        &self.stores[(node.0 % 2) as usize]
    }
}

#[async_trait]
impl Store for TwoStores {
    forward_store!(self => self.next();
        insert, replace, remove, get, load, body, page, search, due, usage, write_records, swap_record, record, records,
        nodes,
    );

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.of(node).claim(node, limit).await
    }

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        self.of(node).join(node).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.of(node).leave(node).await
    }

    async fn publish_address(&self, node: NodeId, address: &str) -> Result<(), StoreError> {
        self.of(node).publish_address(node, address).await
    }

    fn publish_progress(&self, node: NodeId, id: TaskId, progress: &Progress) {
        self.of(node).publish_progress(node, id, progress);
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.stores[0].health()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.stores[1].close().await?;
        self.stores[0].close().await
    }
}

outlast_engine::store_laws!(TwoStores::open(&PostgresServer::shared().fresh_url()));
