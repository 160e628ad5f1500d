//! After the commit: makes the batch visible, then replies to its callers.

use outlast_engine::index::Index;
use outlast_engine::store::InsertResult;
use outlast_engine::{Committed, StoreError, Task, TaskId};

use super::commit::SwappedRecords;
use super::operation::{Operation, Removal, ReplySender};
use super::plan::{Plan, PlannedResult};
use crate::sqlite::row::RowId;

/// The result of a published batch.
#[derive(Debug, Default)]
pub(super) struct PublishResult {
    pub(super) answers: Vec<PreparedReply>,
    /// Removals with remaining tasks.
    pub(super) unfinished: Vec<Removal>,
}

/// A reply to one caller.
#[derive(Debug)]
pub(super) enum PreparedReply {
    Insert(ReplySender<InsertResult>, Result<InsertResult, StoreError>),
    Replace(
        ReplySender<Committed<Task>>,
        Result<Committed<Task>, StoreError>,
    ),
    Remove(ReplySender<Vec<TaskId>>, Vec<TaskId>),
    Records(ReplySender<()>),
    SwapRecord(ReplySender<bool>, bool),
    Refused(Operation, StoreError),
}

/// Makes a committed batch visible.
pub(super) fn publish(
    operations: Vec<Operation>,
    plan: Plan,
    swapped: &SwappedRecords,
    index: &Index<RowId>,
) -> PublishResult {
    let mut published = PublishResult::default();
    let answers = &mut published.answers;
    let changes = &plan.changes;
    for (at, (operation, verdict)) in operations.into_iter().zip(plan.results).enumerate() {
        match (operation, verdict) {
            (Operation::Insert(insert, reply), PlannedResult::Insert(number)) => {
                let row = changes[number].row;
                let task = index.admit(insert.task, row.position(), row);
                answers.push(PreparedReply::Insert(reply, Ok(InsertResult::New(task))));
            }
            (Operation::Insert(_, reply), PlannedResult::Existing(id)) => {
                answers.push(PreparedReply::Insert(reply, Ok(InsertResult::Existing(id))));
            }
            (Operation::Replace(replace, reply), PlannedResult::Replace(number)) => {
                let row = changes[number].row;
                let replaced =
                    index.replace(replace.node, replace.expected, replace.next, |_, _| row);
                answers.push(PreparedReply::Replace(
                    reply,
                    replaced.map(|replaced| replaced.now),
                ));
            }
            (Operation::Remove(mut removal), PlannedResult::Remove { seen, gone }) => {
                removal.remaining.drain(..seen);
                for (id, revision) in gone {
                    index.remove(removal.node, id, revision);
                    removal.removed.push(id);
                }
                if removal.remaining.is_empty() {
                    answers.push(PreparedReply::Remove(removal.reply, removal.removed));
                } else {
                    published.unfinished.push(removal);
                }
            }
            (Operation::Records(_, reply), PlannedResult::Records) => {
                answers.push(PreparedReply::Records(reply));
            }
            (Operation::SwapRecord(_, _, reply), PlannedResult::Records) => {
                answers.push(PreparedReply::SwapRecord(reply, swapped.0.contains(&at)));
            }
            (operation, PlannedResult::Refused(error)) => {
                answers.push(PreparedReply::Refused(operation, error));
            }
            // Expiry of records has no caller, and no other combination is planned.
            (_, _) => {}
        }
    }
    published
}

impl PreparedReply {
    /// Sends the reply. The caller may have stopped waiting.
    pub(super) fn send(self) {
        match self {
            Self::Insert(reply, answer) => drop(reply.send(answer)),
            Self::Replace(reply, answer) => drop(reply.send(answer)),
            Self::Remove(reply, gone) => drop(reply.send(Ok(gone))),
            Self::Records(reply) => drop(reply.send(Ok(()))),
            Self::SwapRecord(reply, done) => drop(reply.send(Ok(done))),
            Self::Refused(operation, error) => operation.refuse(error),
        }
    }
}
