//! Stores that are wrong on purpose. The check of the histories must detect them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::store::{Replace, Snapshot, StoreFuture};
use outlast_engine::{Committed, MemoryStore, Scope, Store, Task, TaskId, forward_store};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongBehaviour {
    /// Every read returns the task as it was at the previous read.
    OldReads,
    /// A task may end although it has ended.
    TwoEnds,
}

pub(crate) struct WrongStore {
    inner: Arc<MemoryStore>,
    fault: WrongBehaviour,
    shown: Mutex<HashMap<TaskId, Snapshot>>,
}

impl WrongStore {
    pub(crate) fn new(fault: WrongBehaviour) -> Self {
        Self {
            inner: Arc::new(MemoryStore::new()),
            fault,
            shown: Mutex::default(),
        }
    }
}

#[async_trait]
impl Store for WrongStore {
    fn replace(&self, replace: Replace) -> StoreFuture<'static, Committed<Task>> {
        if self.fault != WrongBehaviour::TwoEnds || replace.next.state.ending().is_none() {
            return self.inner.replace(replace);
        }
        let inner = self.inner.clone();
        StoreFuture::boxed(async move {
            // Other clients that end the task have read it by now.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let id = replace.next.id;
            let now = inner.get(&Scope::AnyTask, id).await?;
            let expected = now.map_or(replace.expected, |now| now.revision());
            let again = Replace {
                expected,
                ..replace
            };
            inner.replace(again).await
        })
    }

    fn get<'a>(&'a self, scope: &'a Scope, id: TaskId) -> StoreFuture<'a, Option<Snapshot>> {
        StoreFuture::boxed(async move {
            let now = self.inner.get(scope, id).await?;
            if self.fault != WrongBehaviour::OldReads {
                return Ok(now);
            }
            let mut shown = self.shown.lock().expect("no holder of the lock panics");
            let before = now.clone().and_then(|now| shown.insert(id, now));
            Ok(before.or(now))
        })
    }

    forward_store!(self => &self.inner;
        insert, remove, load, body, page, search, due, claim, usage, write_records, swap_record, record, records, join, leave, publish_address,
        publish_progress,
        nodes, health, close,
    );
}
