//! References to tasks at servers. A reference is stored before the task is reported, so that the
//! task can be found again after a restart of this program.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{Clock, InputResponse, Outcome, Store, StoreError, SystemClock};
use outlast_wire::envelope::Id;
use outlast_wire::{PeerTask, Raw, Status, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::call::CallSpec;
use super::client::Core;
use super::execution::OutcomeError;
use super::server_description::Generation;

/// A task at a server, and the call that created it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskReference {
    /// The endpoint of the server: a URL or a command.
    pub endpoint: String,
    /// The generation of the server: `v1` or `v2`; empty if only the id is known.
    pub generation: String,
    /// The id of the task.
    pub task: String,
    /// The tool that was called.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Option<Raw>,
    /// When the task was created, by the local clock.
    #[serde(rename = "created_ms", with = "created_ms")]
    pub created: Timestamp,
    /// The TTL of the task.
    #[serde(rename = "ttl_ms", with = "ttl_ms", default)]
    pub ttl: Option<Duration>,
    progress_token: Option<Id>,
}

/// An input request that the server sent to a previous connection of the same session, and that
/// still waits for its response.
pub(crate) struct OpenInputRequest {
    /// The id of the server's request.
    pub(crate) id: Id,
    /// The response; `None` if the request got its response elsewhere or no longer waits.
    pub(crate) response: Pin<Box<dyn Future<Output = Option<InputResponse>> + Send>>,
}

/// Stores references. Cheap to clone. A process uses each reference at most once at a time.
///
/// ```no_run
/// use outlast::client::{Client, ClientOptions, ReferenceStore, Target};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let store = outlast::store::open("sqlite:references.db").await?;
/// let references = ReferenceStore::new(store);
/// let options = ClientOptions::default().with_references(references.clone());
/// let client = Client::connect(Target::url("http://127.0.0.1:8040/mcp"), options).await?;
/// // After a restart of this program: the tasks that it has not fetched yet.
/// for reference in references.all(None).await? {
///     println!("{}", client.resume(reference)?.result().await?.text());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ReferenceStore {
    store: Arc<dyn Store>,
    in_use: Arc<Mutex<BTreeSet<RecordKey>>>,
}

/// The reference is in use: an execution in this program already follows its task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {0} is already followed in this program")]
pub struct ReferenceInUse(pub String);

/// Marks a reference as in use until it is dropped.
pub(crate) struct ReferenceGuard {
    entry: Option<(ReferenceStore, RecordKey)>,
}

impl TaskReference {
    /// A reference to a task of which only the id is known, such as one that another program
    /// created.
    pub fn known_by_id(endpoint: impl Into<String>, task: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            generation: String::new(),
            task: task.into(),
            tool: String::new(),
            arguments: None,
            created: SystemClock.now(),
            ttl: None,
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
            created: now,
            ttl: task.ttl_ms.map(Duration::from_millis),
            progress_token: Some(token.clone()),
        }
    }

    pub(crate) fn token(&self) -> Option<Id> {
        self.progress_token.clone()
    }

    /// The TTL in milliseconds, as the protocol has it.
    pub(crate) fn ttl_ms(&self) -> Option<u64> {
        self.ttl.map(|ttl| ttl.as_millis() as u64)
    }

    /// The task as far as it is known without a poll.
    pub(crate) fn as_task(&self) -> PeerTask {
        PeerTask {
            id: self.task.clone(),
            status: Status::Working,
            message: None,
            created: None,
            updated: None,
            ttl_ms: self.ttl_ms(),
            poll_interval_ms: None,
        }
    }

    fn key(&self) -> RecordKey {
        // S4-35: an id is unique only at its server.
        RecordKey::new(KIND, format!("{} {}", self.task, self.endpoint))
    }

    fn record(&self) -> Record {
        let bytes = serde_json::to_vec(self).expect("strings and numbers are JSON");
        let expires = self
            .ttl_ms()
            .map(|ttl| self.created.plus(ttl).plus(KEEP_AFTER_TTL_MS));
        Record {
            key: self.key(),
            owner: None,
            expires,
            bytes: bytes.into(),
        }
    }
}

/// A time as a number of milliseconds since 1970.
mod created_ms {
    use super::{Deserialize, Timestamp};

    pub(super) fn serialize<S: serde::Serializer>(
        time: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.0)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        u64::deserialize(deserializer).map(Timestamp)
    }
}

/// A duration as a number of milliseconds.
mod ttl_ms {
    use super::{Deserialize, Duration, Serialize};

    pub(super) fn serialize<S: serde::Serializer>(
        ttl: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        ttl.map(|ttl| ttl.as_millis() as u64).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let ttl_ms = Option::<u64>::deserialize(deserializer)?;
        Ok(ttl_ms.map(Duration::from_millis))
    }
}

impl ReferenceStore {
    /// Keeps references in `store`, which should be durable.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            in_use: Arc::default(),
        }
    }

    /// All references, or those of one endpoint, including those in use.
    pub async fn all(&self, endpoint: Option<&str>) -> Result<Vec<TaskReference>, StoreError> {
        let records = self.store.records(KIND, None, SystemClock.now()).await?;
        let read = |record: Record| serde_json::from_slice::<TaskReference>(&record.bytes).ok();
        let found = records.into_iter().filter_map(read);
        let here = |found: &TaskReference| endpoint.is_none_or(|here| found.endpoint == here);
        Ok(found.filter(here).collect())
    }

    /// Whether an execution in this program follows the task.
    pub(crate) fn is_in_use(&self, reference: &TaskReference) -> bool {
        let in_use = self.in_use.lock();
        in_use.contains(&reference.key())
    }

    /// Stores a reference and marks it as in use. If the store fails, only the reference is lost,
    /// not the call.
    pub(crate) async fn acquire(&self, reference: &TaskReference) -> ReferenceGuard {
        let key = reference.key();
        self.in_use.lock().insert(key.clone());
        let guard = ReferenceGuard {
            entry: Some((self.clone(), key)),
        };
        let write = RecordWrite::Put(reference.record());
        if let Err(error) = self.store.write_records(vec![write]).await {
            tracing::warn!(%error, task = reference.task, "could not store the reference of a task");
        }
        guard
    }
}

impl ReferenceGuard {
    /// A guard for a reference that is not stored.
    pub(crate) fn unstored() -> Self {
        Self { entry: None }
    }

    /// Removes the reference at the end of its execution, unless the task may still be resumed.
    pub(crate) async fn finish(self, ended: &Result<Outcome, OutcomeError>) {
        let over = matches!(ended, Ok(_) | Err(OutcomeError::Expired(_)));
        if let Some((references, key)) = self.entry.as_ref().filter(|_| over) {
            let write = RecordWrite::Delete(key.clone());
            if let Err(error) = references.store.write_records(vec![write]).await {
                tracing::warn!(%error, "could not remove the reference of an ended task");
            }
        }
    }
}

impl Drop for ReferenceGuard {
    fn drop(&mut self) {
        if let Some((references, key)) = &self.entry {
            let mut in_use = references.in_use.lock();
            in_use.remove(key);
        }
    }
}

/// The kind of these records in the store.
const KIND: &str = "client-task";

/// How long a reference is kept after the TTL of its task, so that the expiry can be reported.
const KEEP_AFTER_TTL_MS: u64 = 24 * 3_600_000;
