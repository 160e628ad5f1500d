//! One transaction: the changes of a plan, its records, and the mark.

use outlast_engine::TaskId;
use outlast_engine::store::Reason;
use rusqlite::{Connection, Statement};

use super::operation::Operation;
use super::plan::{Plan, TaskChange};
use crate::sqlite::connect;
use crate::sqlite::failpoint::{DiskFailure, FailPoint};
use crate::sqlite::file_fault::FileFault;
use crate::sqlite::mark::Mark;
use crate::sqlite::records::RecordStatements;
use crate::sqlite::row::TaskStatements;
use crate::sqlite::schema;

/// The statements of the writer, prepared once per connection.
pub(super) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    pub(super) records: RecordStatements<'c>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    tasks: TaskStatements<'c>,
    mark: Statement<'c>,
}

/// The numbers of the operations that swapped a record. The others found another one.
#[derive(Debug, Default)]
pub(super) struct SwappedRecords(pub(super) Vec<usize>);

/// Why a transaction was not committed.
#[derive(Debug)]
pub(super) enum CommitError {
    /// Not caused by a single part of the batch.
    Batch(FileFault),
    /// Caused by the change of this task.
    Task(TaskId, FileFault),
    /// Caused by the operation with this number.
    Operation(usize, FileFault),
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            records: RecordStatements::prepare(connection)?,
            begin: connect::prepare(connection, "BEGIN IMMEDIATE")?,
            commit: connect::prepare(connection, "COMMIT")?,
            tasks: TaskStatements::prepare(connection)?,
            mark: connect::prepare(connection, schema::SET_MARK)?,
        })
    }

    /// Writes the plan and syncs.
    pub(super) fn commit(
        &mut self,
        operations: &[Operation],
        plan: &Plan,
        mark: &Mark,
        failure_at: impl Fn(FailPoint) -> Option<DiskFailure>,
    ) -> Result<SwappedRecords, CommitError> {
        self.begin.raw_execute().map_err(CommitError::from)?;
        let written = self.write(operations, plan, mark).and_then(|swapped| {
            if let Some(failure) = failure_at(FailPoint::BeforeCommit) {
                return Err(CommitError::Batch(failure.into()));
            }
            self.commit.raw_execute().map_err(CommitError::from)?;
            match failure_at(FailPoint::AfterCommit) {
                None => Ok(swapped),
                // Data that is in the file has its space, so every failure here is a failed sync.
                Some(_) => Err(CommitError::Batch(DiskFailure::SyncError.into())),
            }
        });
        if written.is_err() && !self.connection.is_autocommit() {
            let undone = self.connection.execute_batch("ROLLBACK");
            undone.map_err(CommitError::from)?;
        }
        written
    }

    fn write(
        &mut self,
        operations: &[Operation],
        plan: &Plan,
        mark: &Mark,
    ) -> Result<SwappedRecords, CommitError> {
        // In row order: neighbours share pages, and new rows are appended to their table.
        let mut changes: Vec<&TaskChange> = plan.changes.iter().collect();
        changes.sort_unstable_by_key(|change| change.row);
        for change in changes {
            self.change(operations, plan, change).map_err(|fault| {
                CommitError::of(fault, |fault| CommitError::Task(change.id, fault))
            })?;
        }
        let mut swapped = SwappedRecords::default();
        for (number, (operation, verdict)) in operations.iter().zip(&plan.results).enumerate() {
            let written = match operation {
                Operation::ExpireRecords(now) => self.records.expire(*now, MAX_EXPIRED_RECORDS),
                Operation::SwapRecord(swap, now, _) => {
                    let done = self.records.swap(swap, *now);
                    done.map(|done| swapped.0.extend(done.then_some(number)))
                }
                operation if verdict.is_done() => self.records.write(operation.records()),
                _ => Ok(()),
            };
            written.map_err(|error| {
                CommitError::of(error.into(), |fault| CommitError::Operation(number, fault))
            })?;
        }
        match self
            .mark
            .execute([mark.text()])
            .map_err(CommitError::from)?
        {
            1 => Ok(swapped),
            _ => Err(CommitError::Batch(FileFault::Damaged(Reason::new(
                "the mark is missing in the table `meta`",
            )))),
        }
    }

    fn change(
        &mut self,
        operations: &[Operation],
        plan: &Plan,
        change: &TaskChange,
    ) -> Result<(), FileFault> {
        let (tasks, row) = (&mut self.tasks, change.row);
        let there = match (change.from, plan.version(change, operations)) {
            // Inserted and removed within the batch.
            (None, None) => true,
            (Some(from), None) => {
                tasks.delete(from, change.had_ended)?;
                // If another program deleted the row, the result is the same.
                true
            }
            (None, Some((task, body))) => {
                tasks.insert(row, task, body)?;
                true
            }
            (Some(_), Some((task, body))) if change.had_ended => {
                tasks.update_ended(row, task, body)?
            }
            (Some(from), Some((task, body))) if task.state.ending().is_some() => {
                tasks.end(from, row, task, body)?
            }
            (Some(_), Some((task, _))) => tasks.update(row, task)?,
        };
        if there {
            return Ok(());
        }
        let row = change.from.unwrap_or(change.row).0;
        let gone = format!("task {} is no longer in row {row} of the file", change.id);
        Err(FileFault::Missing(Reason::new(gone)))
    }
}

impl CommitError {
    /// Attributes a fault that concerns one task or operation to it, and others to the batch.
    fn of(fault: FileFault, attribute: impl FnOnce(FileFault) -> Self) -> Self {
        match fault {
            FileFault::Refused(_) | FileFault::Missing(_) => attribute(fault),
            FileFault::Io(_)
            | FileFault::Full(_)
            | FileFault::Busy(_)
            | FileFault::Damaged(_)
            | FileFault::Replaced(_) => Self::Batch(fault),
        }
    }
}

impl From<rusqlite::Error> for CommitError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Batch(error.into())
    }
}

/// How many expired records one commit deletes at most.
const MAX_EXPIRED_RECORDS: u32 = 256;
