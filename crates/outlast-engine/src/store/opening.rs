//! A store that is being opened: until it is open every operation is refused as starting.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::{Raw, Timestamp};
use tokio::sync::{SetOnce, watch};

use super::{
    Committed, Due, Feed, Health, Insert, Inserted, Page, Position, Reason, Record, RecordKey,
    RecordWrite, Replace, Snapshot, Store, StoreError, StoreFuture, Usage,
};
use crate::id::{NodeId, Revision, Scope, TaskId};
use crate::owner::Owner;
use crate::task::Task;

/// A store that a task of the runtime opens.
///
/// [`Store::join`] waits until it is open, so that an engine can [start](crate::engine::EngineBuilder::start) on
/// it. Every other operation is refused with [`StoreError::Starting`] until then, or with the error if
/// it cannot be opened.
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
    /// Opens the store, then reports its health as its own.
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
        // The store is gone when its health has no sender.
        while health.changed().await.is_ok() {
            let now = health.borrow_and_update().clone();
            self.health.send_replace(now);
        }
    }
}

#[async_trait]
impl Store for OpeningStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, Inserted> {
        match self.opened() {
            Ok(store) => store.insert(insert),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        match self.opened() {
            Ok(store) => store.replace(replace),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    async fn remove(
        &self,
        node: NodeId,
        tasks: Vec<(TaskId, Revision)>,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.opened()?.remove(node, tasks).await
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        match self.opened() {
            Ok(store) => store.get(scope, id),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    async fn load(&self, scope: &Scope, id: TaskId) -> Result<Option<Committed<Task>>, StoreError> {
        self.opened()?.load(scope, id).await
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        match self.opened() {
            Ok(store) => store.body(scope, id),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.opened()?.page(owner, after, limit).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.opened()?.due(now, limit).await
    }

    async fn claim(&self, node: NodeId, limit: usize) -> Result<Vec<Committed<Task>>, StoreError> {
        self.opened()?.claim(node, limit).await
    }

    async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        self.opened()?.usage(owner).await
    }

    async fn write_records(&self, records: Vec<RecordWrite>) -> Result<(), StoreError> {
        self.opened()?.write_records(records).await
    }

    async fn record(&self, key: &RecordKey, now: Timestamp) -> Result<Option<Record>, StoreError> {
        self.opened()?.record(key, now).await
    }

    async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        self.opened()?.records(kind, owner, now).await
    }

    async fn join(&self, node: NodeId) -> Result<Feed, StoreError> {
        let opened = self.0.opened.wait().await;
        opened.as_ref().map_err(Clone::clone)?.join(node).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.opened()?.leave(node).await
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
