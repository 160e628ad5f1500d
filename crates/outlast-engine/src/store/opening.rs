//! A store that is being opened: until it is open, every operation is refused with
//! [`StoreError::Starting`].

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{SetOnce, watch};

use super::{Health, Reason, Store, StoreError, StoreEvents};
use crate::forward_store;
use crate::id::NodeId;

/// A store that a spawned future opens.
///
/// [`Store::join`] waits until it is open, so that an engine can
/// [start](crate::engine::EngineBuilder::start) on it. Until then every other operation is refused
/// with [`StoreError::Starting`]. If opening fails, every operation is refused with that error.
pub struct OpeningStore(Arc<Shared>);

struct Shared {
    opened: SetOnce<Result<Arc<dyn Store>, StoreError>>,
    health: watch::Sender<Health>,
}

impl OpeningStore {
    /// Starts `open`.
    pub fn new(
        open: impl Future<Output = Result<Arc<dyn Store>, StoreError>> + Send + 'static,
    ) -> Self {
        let starting = Health::Down(Reason::new("it is being opened"));
        let shared = Arc::new(Shared {
            opened: SetOnce::new(),
            health: watch::Sender::new(starting),
        });
        tokio::spawn(shared.clone().open(open));
        Self(shared)
    }

    fn opened(&self) -> Result<&Arc<dyn Store>, StoreError> {
        match self.0.opened.get() {
            None => Err(StoreError::Starting),
            Some(Ok(store)) => Ok(store),
            Some(Err(error)) => Err(error.clone()),
        }
    }
}

impl Shared {
    /// Opens the store, then forwards its health.
    async fn open(
        self: Arc<Self>,
        open: impl Future<Output = Result<Arc<dyn Store>, StoreError>> + Send,
    ) {
        let opened = open.await;
        let health = opened.as_ref().ok().map(|store| store.health());
        match &opened {
            Ok(store) => self.health.send_replace(store.health().borrow().clone()),
            Err(error) => {
                let why = Reason::new(error.to_string());
                self.health.send_replace(Health::Down(why))
            }
        };
        // It is set once, here.
        let _ = self.opened.set(opened);
        let Some(mut health) = health else { return };
        // The store was dropped when its health has no sender.
        while health.changed().await.is_ok() {
            let now = health.borrow_and_update().clone();
            self.health.send_replace(now);
        }
    }
}

#[async_trait]
impl Store for OpeningStore {
    forward_store!(self => self.opened()?;
        insert, replace, remove, get, load, body, page, search, due, claim, usage, write_records, swap_record, record, records,
        leave, publish_address, publish_progress, nodes,
    );

    async fn join(&self, node: NodeId) -> Result<StoreEvents, StoreError> {
        let opened = self.0.opened.wait().await;
        opened.as_ref().map_err(Clone::clone)?.join(node).await
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.0.health.subscribe()
    }

    async fn close(&self) -> Result<(), StoreError> {
        match self.0.opened.wait().await {
            Ok(store) => store.close().await,
            // There is nothing to close.
            Err(_) => Ok(()),
        }
    }
}
