//! Everything that a store holds, through its public interface.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::store::{Record, Snapshot};
use outlast_engine::{Owner, Scope, Store, StoreError, Task, TaskId};
use outlast_wire::Raw;

use crate::facts::Versions;

/// The content of a store.
#[derive(Debug, Default)]
pub(crate) struct StoreContents {
    pub(crate) contents: Versions,
    pub(crate) tasks: Vec<Arc<Task>>,
}

impl StoreContents {
    /// Reads all of it: the list of each owner, each task and its body, the records.
    pub(crate) async fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let mut everything = Self::default();
        for owner in owners() {
            let mut after = None;
            loop {
                let page = store.page(&owner, after, PAGE_TASKS).await?;
                for id in page.tasks.iter().map(Snapshot::id) {
                    everything.add(store, &owner, id).await?;
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        for record in store.records(RECORD_KIND, None, fixtures::CREATED).await? {
            let found = (record_version(&record.bytes), hash(&record.bytes));
            everything.contents.insert(record_name(&record), found);
        }
        Ok(everything)
    }

    async fn add(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        id: TaskId,
    ) -> Result<(), StoreError> {
        let scope = Scope::OwnedBy(owner.clone());
        // A task that is listed and cannot be read is lost.
        if let Some(task) = store.load(&scope, id).await? {
            let body = store.body(&scope, id).await?;
            let found = (task.revision.0.into(), fingerprint(&task, body.as_ref()));
            self.contents.insert(task_name(id), found);
            self.tasks.push(task.shared());
        }
        Ok(())
    }
}

/// The owners of all tasks here.
pub(crate) fn owners() -> [Owner; 2] {
    [fixtures::ada(), fixtures::bob()]
}

/// A hash of all fields of a task, and of its body byte for byte.
pub(crate) fn fingerprint(task: &Task, body: Option<&Raw>) -> u64 {
    // Another process may print an owner differently.
    let text = format!("{task:?}").replace(&format!("{:?}", task.owner), "");
    let owner = owners().iter().position(|owner| *owner == task.owner);
    hash(&(text, owner, body.map(Raw::as_str)))
}

pub(crate) fn task_name(id: TaskId) -> String {
    format!("task {id}")
}

pub(crate) fn record_name(record: &Record) -> String {
    format!("record {}", record.key.key)
}

/// The content of a record starts with its version.
pub(crate) fn record_version(bytes: &[u8]) -> u64 {
    let number = bytes.get(..8).and_then(|bytes| bytes.try_into().ok());
    number.map_or(0, u64::from_be_bytes)
}

/// A hash that is the same in every process of one program.
pub(crate) fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The kind of all records here.
pub(crate) const RECORD_KIND: &str = "crash";

/// Small, so that lists have several pages.
const PAGE_TASKS: usize = 17;
