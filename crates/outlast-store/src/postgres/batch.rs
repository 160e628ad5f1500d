//! Operations as JSON for the function `write_batch`, and its replies.

use std::sync::{Arc, OnceLock};

use outlast_engine::store::{Insert, InsertResult, Record, RecordSwap, RecordWrite, Replace};
use outlast_engine::{Committed, NodeId, Owner, Revision, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::connection::unavailable;
use super::progress::PendingProgress;
use super::text::encode;
use crate::encoding;

/// Where a reply goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A write.
pub(super) enum Operation {
    Insert(Insert, Reply<InsertResult>),
    Replace(Replace, Reply<Committed<Task>>),
    Remove(NodeId, Vec<(TaskId, Revision)>, Reply<Vec<TaskId>>),
    Records(Vec<RecordWrite>, Reply<()>),
    Swap(RecordSwap, Timestamp, Reply<bool>),
    /// What was pending when the writer came to it.
    Progress(
        Arc<PendingProgress>,
        OnceLock<Vec<(TaskId, NodeId, String)>>,
    ),
}

/// One row that `write_batch` returned.
pub(super) struct StepReply {
    pub(super) word: String,
    pub(super) existing: Option<String>,
}

impl Operation {
    /// The steps of the operation. Each has one row in the reply.
    pub(super) fn steps(&self) -> Vec<Value> {
        match self {
            Self::Insert(insert, _) => vec![json!({
                "kind": "insert",
                "task": task(&insert.task, None),
                "owner_open": insert.quota.owner_open,
                "owner_retained": insert.quota.owner_retained,
                "open": insert.quota.open,
                "retained": insert.quota.retained,
                "records": insert.records.iter().map(record).collect::<Vec<_>>(),
            })],
            Self::Replace(replace, _) => vec![json!({
                "kind": "replace",
                "node": replace.node.0.cast_signed(),
                "expected": replace.expected.0,
                "task": task(&replace.next, replace.body.as_ref()),
                "records": replace.records.iter().map(record).collect::<Vec<_>>(),
            })],
            Self::Remove(node, tasks, _) => tasks
                .iter()
                .map(|(id, expected)| {
                    json!({
                        "kind": "remove",
                        "node": node.0.cast_signed(),
                        "id": id.to_string(),
                        "expected": expected.0,
                    })
                })
                .collect(),
            Self::Records(writes, _) => {
                vec![
                    json!({ "kind": "records", "records": writes.iter().map(record).collect::<Vec<_>>() }),
                ]
            }
            Self::Swap(swap, now, _) => vec![json!({
                "kind": "swap",
                "now": bounded(now.0),
                "expected": swap.expected.as_deref().map(hex),
                "record": put(&swap.record),
            })],
            Self::Progress(pending, taken) => taken
                .get_or_init(|| pending.take())
                .iter()
                .map(|(id, node, text)| {
                    json!({
                        "kind": "progress",
                        "node": node.0.cast_signed(),
                        "id": id.to_string(),
                        "progress": text,
                    })
                })
                .collect(),
        }
    }

    /// The number of steps.
    pub(super) fn steps_len(&self) -> usize {
        match self {
            Self::Remove(_, tasks, _) => tasks.len(),
            Self::Progress(_, taken) => taken.get().map_or(1, Vec::len),
            Self::Insert(..) | Self::Replace(..) | Self::Records(..) | Self::Swap(..) => 1,
        }
    }

    /// Whether it has something for other nodes, which may know the task.
    pub(super) fn changes_tasks(&self) -> bool {
        matches!(
            self,
            Self::Replace(..) | Self::Remove(..) | Self::Progress(..)
        )
    }

    /// The approximate size of its steps.
    pub(super) fn size_bytes(&self) -> usize {
        let of_record = |write: &RecordWrite| match write {
            RecordWrite::Put(record) => 2 * record.bytes.len(),
            RecordWrite::Delete(_) => 0,
        };
        let of_records = |writes: &[RecordWrite]| writes.iter().map(of_record).sum::<usize>();
        let variable = match self {
            Self::Insert(insert, _) => {
                let params = insert.task.origin.params.as_ref();
                params.map_or(0, Raw::size) + of_records(&insert.records)
            }
            Self::Replace(replace, _) => {
                let body = replace.body.as_ref().map_or(0, Raw::size);
                let params = replace.next.origin.params.as_ref();
                body + params.map_or(0, Raw::size) + of_records(&replace.records)
            }
            Self::Remove(..) | Self::Progress(..) => 0,
            Self::Records(writes, _) => of_records(writes),
            Self::Swap(swap, ..) => 2 * swap.record.bytes.len(),
        };
        variable + self.steps_len() * STEP_BYTES
    }

    /// Sends the reply, from the rows of its steps.
    pub(super) fn reply(self, steps: &[StepReply]) {
        let first = steps.first().map_or("", |step| step.word.as_str());
        // A caller that does not wait needs no reply.
        match self {
            Self::Insert(insert, reply) => {
                let found = steps.first().and_then(|step| step.existing.as_deref());
                let _ = reply.send(inserted(insert, first, found));
            }
            Self::Replace(replace, reply) => {
                let _ = reply.send(match first {
                    "done" => Ok(Committed::confirmed_by_backend(replace.next)),
                    "lost" => Err(lost()),
                    _ => Err(StoreError::Conflict {
                        id: replace.next.id,
                        expected: replace.expected,
                    }),
                });
            }
            Self::Remove(_, tasks, reply) => {
                let _ = reply.send(if steps.iter().any(|step| step.word == "lost") {
                    Err(lost())
                } else {
                    let pairs = tasks.into_iter().zip(steps);
                    let removed = pairs.filter(|(_, step)| step.word == "done");
                    Ok(removed.map(|((id, _), _)| id).collect())
                });
            }
            Self::Records(_, reply) => {
                let _ = reply.send(Ok(()));
            }
            Self::Swap(_, _, reply) => {
                let _ = reply.send(Ok(first == "done"));
            }
            // The next progress replaces it.
            Self::Progress(..) => {}
        }
    }

    /// Sends an error as the reply.
    pub(super) fn fail(self, error: StoreError) {
        match self {
            Self::Insert(_, reply) => drop(reply.send(Err(error))),
            Self::Replace(_, reply) => drop(reply.send(Err(error))),
            Self::Remove(_, _, reply) => drop(reply.send(Err(error))),
            Self::Records(_, reply) => drop(reply.send(Err(error))),
            Self::Swap(_, _, reply) => drop(reply.send(Err(error))),
            Self::Progress(..) => {}
        }
    }
}

fn inserted(insert: Insert, reply: &str, found: Option<&str>) -> Result<InsertResult, StoreError> {
    let (quota, owner) = (insert.quota, insert.task.owner.clone());
    match reply {
        "done" => Ok(InsertResult::New(Committed::confirmed_by_backend(
            insert.task,
        ))),
        "existing" => match found.map(str::parse) {
            Some(Ok(id)) => Ok(InsertResult::Existing(id)),
            _ => Err(unavailable("the id of a task is not an id")),
        },
        "exists" => Err(StoreError::Exists(insert.task.id)),
        "full" => Err(StoreError::Full {
            limit: quota.retained,
        }),
        "busy" => Err(StoreError::Busy { limit: quota.open }),
        "owner_busy" => Err(StoreError::OwnerBusy {
            owner,
            limit: quota.owner_open,
        }),
        "owner_full" => Err(StoreError::OwnerFull {
            owner,
            limit: quota.owner_retained,
        }),
        _ => Err(lost()),
    }
}

fn lost() -> StoreError {
    unavailable("the lease of this node lapsed; it joins again")
}

/// The columns of a task.
fn task(task: &Task, body: Option<&Raw>) -> Value {
    let origin = &task.origin;
    let text = |text: Option<&str>| text.map(|text| encode(text).into_owned());
    let raw = |raw: Option<&Raw>| raw.map(|raw| raw.as_str().to_owned());
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        let out = String::from_utf8(out).expect("JSON writers make UTF-8");
        (!out.is_empty()).then(|| encode(&out).into_owned())
    };
    let ended = task.state.ending().is_some();
    let has_node = !ended && task.executor != NodeId::DETACHED;
    let executor = task.executor.0.cast_signed();
    let columns: [(&str, Value); 24] = [
        ("id", task.id.to_string().into()),
        ("owner", owner(&task.owner).into()),
        ("request_key", text(task.request_key.as_deref()).into()),
        ("created", bounded(task.created.0).into()),
        ("state", encoding::text::state(&task.state).into()),
        ("message", text(task.message.as_deref()).into()),
        ("updated", bounded(task.updated.0).into()),
        ("ttl", bounded(task.lifetime.ttl_ms).into()),
        ("due", bounded(task.due().0).into()),
        ("poll_interval", task.poll_interval_ms.into()),
        ("revision", task.revision.0.into()),
        ("attempt", task.attempt.0.into()),
        ("executor", executor.into()),
        ("node", has_node.then_some(executor).into()),
        ("ended", ended.into()),
        (
            "timeline",
            written(&|out| encoding::text::timeline(out, task)).into(),
        ),
        (
            "handle",
            task.resume_state.as_ref().map(|state| hex(&state.0)).into(),
        ),
        (
            "details",
            written(&|out| encoding::details::write(out, task)).into(),
        ),
        ("method", encode(&origin.method).into()),
        ("tool", text(origin.tool.as_deref()).into()),
        ("runner", encode(&origin.runner).into()),
        ("accepts", origin.accepts.bits().into()),
        ("retry", encoding::text::retry(origin.retry).into()),
        ("progress_token", raw(origin.progress_token.as_ref()).into()),
    ];
    let mut row: Map<String, Value> = columns
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    row.insert("params".to_owned(), raw(origin.params.as_ref()).into());
    row.insert("body".to_owned(), raw(body).into());
    row.into()
}

/// The insertion of a task that exists elsewhere. No quota applies.
#[cfg(feature = "sqlite")]
pub(super) fn copied(copy: &Task, body: Option<&Raw>) -> Value {
    json!({
        "kind": "insert",
        "task": task(copy, body),
        "owner_open": u64::MAX,
        "owner_retained": u64::MAX,
        "open": u64::MAX,
        "retained": u64::MAX,
        "records": [],
    })
}

/// The columns of a record to write, or its key if it is deleted.
pub(super) fn record(write: &RecordWrite) -> Value {
    match write {
        RecordWrite::Put(record) => put(record),
        RecordWrite::Delete(key) => json!({ "kind": encode(&key.kind), "key": encode(&key.key) }),
    }
}

fn put(record: &Record) -> Value {
    json!({
        "kind": encode(&record.key.kind),
        "key": encode(&record.key.key),
        "owner": record.owner.as_ref().map(owner),
        "expires": record.expires.map(|at| bounded(at.0)),
        "bytes": hex(&record.bytes),
    })
}

/// The text of an owner in a column.
pub(super) fn owner(owner: &Owner) -> String {
    encode(&owner.to_storage()).into_owned()
}

/// A number of milliseconds in a column. Times after the year 292 million are that year.
pub(super) fn bounded(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Bytes as PostgreSQL writes them.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("\\x");
    for byte in bytes {
        // A string takes every text.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The approximate size of a step without payloads.
const STEP_BYTES: usize = 512;
