//! What is needed to find a task again after this program has ended: stored before anybody hears of the task.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{Answer, Clock, Outcome, Store, StoreError, SystemClock};
use outlast_wire::envelope::Id;
use outlast_wire::{PeerTask, Raw, Status, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::call::CallSpec;
use super::client::Core;
use super::execution::OutcomeError;
use super::server_description::Generation;

/// A task at a server, and the call that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReference {
    /// Where the server is: a URL, or a command.
    pub endpoint: String,
    /// How the server does tasks: `v1` or `v2`; empty where only the id is known.
    pub generation: String,
    /// The task.
    pub task: String,
    /// The tool that was called.
    pub tool: String,
    /// With what.
    pub arguments: Option<Raw>,
    /// When, in milliseconds since 1970, by our own clock.
    pub created_ms: u64,
    /// How long the server keeps the task, in milliseconds.
    pub ttl_ms: Option<u64>,
    progress_token: Option<Id>,
}

/// An input request that the server sent to a previous connection in the same session, and that it still waits for.
pub(crate) struct OpenInputRequest {
    /// The id of the server's request.
    pub(crate) id: Id,
    /// The answer; `None` if the request is answered elsewhere or not any more.
    pub(crate) answer: Pin<Box<dyn Future<Output = Option<Answer>> + Send>>,
}

/// ReferenceStore in a store. Cheap to clone; one process has each reference at most once in use.
#[derive(Clone)]
pub struct ReferenceStore {
    store: Arc<dyn Store>,
    in_use: Arc<Mutex<BTreeSet<RecordKey>>>,
}

/// The reference is in use: its task is observed already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {0} is observed already in this program")]
pub struct ReferenceInUse(pub String);

/// A reference in use, until it is done with.
pub(crate) struct ReferenceGuard {
    place: Option<(ReferenceStore, RecordKey)>,
}

impl TaskReference {
    /// A task of which only the id is known, such as one that another program began.
    pub fn known_by_id(endpoint: impl Into<String>, task: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            generation: String::new(),
            task: task.into(),
            tool: String::new(),
            arguments: None,
            created_ms: SystemClock.now().0,
            ttl_ms: None,
            progress_token: None,
        }
    }

    pub(crate) fn new(
        core: &Core,
        generation: Generation,
        spec: &CallSpec,
        task: &PeerTask,
        token: &Id,
        now: Timestamp,
    ) -> Self {
        Self {
            endpoint: core.endpoint.clone(),
            generation: generation.word().into(),
            task: task.id.clone(),
            tool: spec.tool.to_string(),
            arguments: spec.arguments.clone(),
            created_ms: now.0,
            ttl_ms: task.ttl_ms,
            progress_token: Some(token.clone()),
        }
    }

    pub(crate) fn token(&self) -> Option<Id> {
        self.progress_token.clone()
    }

    pub(crate) fn created(&self) -> Timestamp {
        Timestamp(self.created_ms)
    }

    /// The task as far as it is known without asking.
    pub(crate) fn as_task(&self) -> PeerTask {
        PeerTask {
            id: self.task.clone(),
            status: Status::Working,
            message: None,
            created: None,
            updated: None,
            ttl_ms: self.ttl_ms,
            poll_interval_ms: None,
        }
    }

    fn key(&self) -> RecordKey {
        // An id is unique at its server only (S4-35).
        RecordKey::new(KIND, format!("{} {}", self.task, self.endpoint))
    }

    fn record(&self) -> Record {
        let bytes = serde_json::to_vec(self).expect("strings and numbers are JSON");
        let expires = self.ttl_ms.map(|ttl| self.created().plus(ttl).plus(MARGIN));
        Record {
            key: self.key(),
            owner: None,
            expires,
            bytes: bytes.into(),
        }
    }
}

impl ReferenceStore {
    /// ReferenceStore in `store`, which must outlive this program to be of use.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            in_use: Arc::default(),
        }
    }

    /// Those of tasks at one server, or all; those in use as well.
    pub async fn all(&self, endpoint: Option<&str>) -> Result<Vec<TaskReference>, StoreError> {
        let records = self.store.records(KIND, None, SystemClock.now()).await?;
        let read = |record: Record| serde_json::from_slice::<TaskReference>(&record.bytes).ok();
        let found = records.into_iter().filter_map(read);
        let here = |found: &TaskReference| endpoint.is_none_or(|here| found.endpoint == here);
        Ok(found.filter(here).collect())
    }

    /// Whether somebody in this program observes the task.
    pub(crate) fn is_in_use(&self, reference: &TaskReference) -> bool {
        let in_use = self.in_use.lock();
        in_use.contains(&reference.key())
    }

    /// Stores a reference and takes it into use. A store that fails costs the reference, not the call.
    pub(crate) async fn keep(&self, reference: &TaskReference) -> ReferenceGuard {
        let key = reference.key();
        self.in_use.lock().insert(key.clone());
        let kept = ReferenceGuard {
            place: Some((self.clone(), key)),
        };
        let write = RecordWrite::Put(reference.record());
        if let Err(error) = self.store.write_records(vec![write]).await {
            tracing::warn!(%error, task = reference.task, "the reference of a task was not stored");
        }
        kept
    }
}

impl ReferenceGuard {
    /// A reference that is kept nowhere.
    pub(crate) fn nowhere() -> Self {
        Self { place: None }
    }

    /// The execution is over. The reference goes unless there may be something to come back for.
    pub(crate) async fn done(self, ended: &Result<Outcome, OutcomeError>) {
        let over = matches!(ended, Ok(_) | Err(OutcomeError::Expired(_)));
        if let Some((references, key)) = self.place.as_ref().filter(|_| over) {
            let write = RecordWrite::Delete(key.clone());
            if let Err(error) = references.store.write_records(vec![write]).await {
                tracing::warn!(%error, "the reference of a task that is over was not removed");
            }
        }
    }
}

impl Drop for ReferenceGuard {
    fn drop(&mut self) {
        if let Some((references, key)) = &self.place {
            let mut in_use = references.in_use.lock();
            in_use.remove(key);
        }
    }
}

/// The kind of these records.
const KIND: &str = "client-task";

/// How long a reference outlives its task, so that its owner can be told that the task has expired.
const MARGIN: u64 = 24 * 3_600_000;
