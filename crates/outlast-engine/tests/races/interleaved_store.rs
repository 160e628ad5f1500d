//! The memory store with a scheduling point before and after every call, and with failures if a
//! scenario needs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast_engine::store::{Insert, InsertResult, Reason, Replace, Snapshot, StoreFuture};
use outlast_engine::{
    Committed, MemoryStore, Scope, Store, StoreError, Task, TaskId, forward_store,
};
use outlast_wire::Raw;
use shuttle::future::yield_now;
use shuttle::rand::Rng;

/// The store of a scenario.
#[derive(Clone, Default)]
pub(crate) struct InterleavedStore {
    inner: Arc<MemoryStore>,
    /// How often each task was stored as ended.
    pub(crate) endings: Arc<Mutex<HashMap<TaskId, usize>>>,
    /// How many writes may still fail, before or after their commit.
    pub(crate) faults: Arc<Mutex<usize>>,
}

impl InterleavedStore {
    async fn read<T>(&self, read: impl Future<Output = T> + Send) -> T {
        yield_now().await;
        let read = read.await;
        yield_now().await;
        read
    }

    async fn write<T>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        yield_now().await;
        let (before, after) = self.failure_points();
        if before {
            return Err(injected_failure());
        }
        let written = write.await;
        yield_now().await;
        if after {
            written.and(Err(injected_failure()))
        } else {
            written
        }
    }

    /// Whether a write fails before or after its commit.
    fn failure_points(&self) -> (bool, bool) {
        let mut left = self.faults.lock().unwrap();
        if *left == 0 {
            return (false, false);
        }
        let (before, after) = match shuttle::rand::thread_rng().gen_range(0..4) {
            0 => (true, false),
            1 => (false, true),
            _ => (false, false),
        };
        *left -= usize::from(before || after);
        (before, after)
    }
}

#[async_trait]
impl Store for InterleavedStore {
    fn insert(&self, insert: Insert) -> StoreFuture<'static, InsertResult> {
        let this = self.clone();
        // Nothing is written before the scheduling point.
        StoreFuture::boxed(
            async move { this.write(async { this.inner.insert(insert).await }).await },
        )
    }

    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        let this = self.clone();
        StoreFuture::boxed(async move {
            let stored = async {
                let stored = this.inner.replace(replace).await?;
                if stored.state.ending().is_some() {
                    *this.endings.lock().unwrap().entry(stored.id).or_default() += 1;
                }
                Ok(stored)
            };
            this.write(stored).await
        })
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(self.read(async move { self.inner.get(scope, id).await }))
    }

    fn body<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Raw>> {
        StoreFuture::boxed(self.read(async move { self.inner.body(scope, id).await }))
    }

    forward_store!(self => &self.inner, around write; remove);
    forward_store!(self => &self.inner, around read; load, page, search, due, claim, join, leave);
    forward_store!(self => &self.inner; usage, write_records, swap_record, record, records, publish_address, publish_progress, nodes, health, close);
}

fn injected_failure() -> StoreError {
    StoreError::Unavailable(Reason::new("a fault struck it"))
}
