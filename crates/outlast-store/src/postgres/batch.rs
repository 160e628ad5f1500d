//! Operations of a batch, and the replies to them. `waves` writes them as JSON.

use std::sync::{Arc, OnceLock};

use outlast_engine::store::{Insert, InsertResult, RecordSwap, RecordWrite, Replace};
use outlast_engine::{Committed, NodeId, Revision, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use tokio::sync::oneshot;

use super::connection::unavailable;
use super::progress::PendingProgress;

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

/// The reply to a step that `write_batch` refused.
pub(super) struct Refusal {
    pub(super) word: String,
    pub(super) existing: Option<String>,
}

impl Operation {
    /// The number of steps.
    pub(super) fn steps_len(&self) -> usize {
        match self {
            Self::Remove(_, tasks, _) => tasks.len(),
            Self::Progress(..) => self.progress().len(),
            Self::Insert(..) | Self::Replace(..) | Self::Records(..) | Self::Swap(..) => 1,
        }
    }

    /// The progress of each task, taken from what waits when it is needed first.
    pub(super) fn progress(&self) -> &[(TaskId, NodeId, String)] {
        match self {
            Self::Progress(pending, taken) => taken.get_or_init(|| pending.take()),
            _ => &[],
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

    /// Sends the reply. The refusals are those of its steps: `None` for a step that took place.
    pub(super) fn reply(self, steps: &[Option<Refusal>]) {
        let first = steps.first().and_then(Option::as_ref);
        // A caller that does not wait needs no reply.
        match self {
            Self::Insert(insert, reply) => {
                let _ = reply.send(match first {
                    None => Ok(InsertResult::New(Committed::confirmed_by_backend(
                        insert.task,
                    ))),
                    Some(refusal) => not_inserted(&insert, refusal),
                });
            }
            Self::Replace(replace, reply) => {
                let _ = reply.send(match first.map(|refusal| refusal.word.as_str()) {
                    None => Ok(Committed::confirmed_by_backend(replace.next)),
                    Some(LOST) => Err(lost()),
                    Some(_) => Err(StoreError::Conflict {
                        id: replace.next.id,
                        expected: replace.expected,
                    }),
                });
            }
            Self::Remove(_, tasks, reply) => {
                let mut refusals = steps.iter().flatten();
                let _ = reply.send(if refusals.any(|refusal| refusal.word == LOST) {
                    Err(lost())
                } else {
                    let pairs = tasks.into_iter().zip(steps);
                    let removed = pairs.filter(|(_, refusal)| refusal.is_none());
                    Ok(removed.map(|((id, _), _)| id).collect())
                });
            }
            Self::Records(_, reply) => {
                let _ = reply.send(Ok(()));
            }
            Self::Swap(_, _, reply) => {
                let _ = reply.send(Ok(first.is_none()));
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

fn not_inserted(insert: &Insert, refusal: &Refusal) -> Result<InsertResult, StoreError> {
    let (quota, owner) = (insert.quota, insert.task.owner.clone());
    match refusal.word.as_str() {
        "existing" => match refusal.existing.as_deref().map(str::parse) {
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

/// The reply of `write_batch` to a node that was marked as lost.
const LOST: &str = "lost";

/// The approximate size of a step without payloads.
const STEP_BYTES: usize = 512;
