//! Recovery after a failed commit: open the file again, verify it, update the index from it,
//! continue.
//!
//! No caller of the failed batch got a success. Tasks that the batch inserted are
//! deleted if the file has them. For tasks that it changed or removed the file is authoritative,
//! and the engines are notified.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use outlast_engine::store::Reason;
use outlast_engine::{Backoff, NodeId, StoreError, TaskId};
use rusqlite::{Connection, TransactionBehavior};

use super::Writer;
use super::operation::{Operation, ReplySender};
use super::plan::Plan;
use crate::sqlite::failpoint::FailPoint;
use crate::sqlite::file_fault::FileFault;
use crate::sqlite::mark::{Mark, MarkState};
use crate::sqlite::row::{self, RowId};
use crate::sqlite::{body, connect, damage, records, scan, schema};

/// A failed batch. It is unknown which parts of it are in the file.
#[derive(Debug)]
pub(super) struct FailedBatch {
    pub(super) fault: FileFault,
    tasks: Vec<UncertainTask>,
}

/// A task whose version in the file is one of two.
#[derive(Debug)]
struct UncertainTask {
    id: TaskId,
    /// Its row before the batch, if it had one.
    from: Option<RowId>,
    /// Its row after the batch.
    row: RowId,
}

impl FailedBatch {
    pub(super) fn of(plan: &Plan, fault: FileFault) -> Self {
        let tasks = plan.changes.iter().map(|change| UncertainTask {
            id: change.id,
            from: change.from,
            row: change.row,
        });
        let tasks = tasks.collect();
        Self { fault, tasks }
    }

    /// A failure outside of a batch.
    pub(super) fn without_tasks(fault: impl Into<FileFault>) -> Self {
        Self {
            fault: fault.into(),
            tasks: Vec::new(),
        }
    }
}

impl Writer {
    /// Refuses all operations until the file can be opened again, or the store is closed.
    pub(super) fn recover(
        &mut self,
        mut failed: FailedBatch,
    ) -> Result<Connection, Option<ReplySender<()>>> {
        let mut backoff = Backoff::new(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);
        loop {
            self.shared.health.set_down(Some(failed.fault.reason()));
            self.refuse_for(backoff.delay(), &failed.fault.error())?;
            match self.reopen(&failed) {
                Ok(connection) => {
                    self.space.open();
                    self.shared.health.set_no_space(None);
                    self.shared.health.set_down(None);
                    return Ok(connection);
                }
                Err(fault) => failed.fault = fault,
            }
        }
    }

    /// Replies to all operations with `error` during `pause`. Fails if the store is closed.
    fn refuse_for(
        &mut self,
        pause: Duration,
        error: &StoreError,
    ) -> Result<(), Option<ReplySender<()>>> {
        for operation in self.backlog.drain(..) {
            operation.refuse(error.clone());
        }
        if let Some(reply) = self.close_requested.take() {
            return Err(reply);
        }
        let until = Instant::now() + pause;
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            match self.queue.recv_timeout(remaining) {
                Ok(Operation::Close(reply)) => return Err(Some(reply)),
                Ok(operation) => operation.refuse(error.clone()),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
            }
        }
    }

    fn reopen(&mut self, failed: &FailedBatch) -> Result<Connection, FileFault> {
        if let Some(failure) = self.failure_at(FailPoint::BeforeReopen) {
            return Err(failure.into());
        }
        // A file that was deleted or replaced is never opened and never created again.
        self.files.check()?;
        let mut connection = connect::writing(&self.path, &self.options)?;
        let found = self.verify(&connection)?;
        // Pages that a failed sync left in the operating system's cache may never reach the disk. A
        // checkpoint writes and syncs them again.
        let busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if busy {
            let reader = "another program reads the file; recovery waits for it";
            return Err(FileFault::Busy(Reason::new(reader)));
        }
        let mark = Mark {
            next_position: found.next_position.max(self.mark.next_position),
            ..found.next(MarkState::Open)
        };
        undo_inserts(&mut connection, failed, &mark)?;
        for task in failed.tasks.iter().filter(|task| task.from.is_some()) {
            self.reload(&connection, task)?;
        }
        self.shared
            .set_record_expiry(records::next_expiry(&connection)?);
        self.files.check()?;
        self.mark = mark;
        Ok(connection)
    }

    /// Refuses a file that lost an acknowledged commit or is damaged.
    fn verify(&self, connection: &Connection) -> Result<Mark, FileFault> {
        let lost = || {
            let what = "the file has lost acknowledged commits; restore it from a backup";
            FileFault::Damaged(Reason::new(what))
        };
        let mark = Mark::read(connection)?.ok_or_else(lost)?;
        if mark.store != self.mark.store || mark.commits < self.mark.commits {
            return Err(lost());
        }
        match damage::quick_check(connection)? {
            None => Ok(mark),
            Some(what) => Err(FileFault::Damaged(Reason::new(what))),
        }
    }

    /// Updates the index with the version of a task in the file.
    fn reload(&self, connection: &Connection, task: &UncertainTask) -> Result<(), FileFault> {
        let index = &self.shared.index;
        let Some(known) = index.current(task.id) else {
            return Ok(());
        };
        let known = known.revision;
        for row in task.from.into_iter().chain([task.row]) {
            let Some(found) = body::task(connection, row, task.id)? else {
                continue;
            };
            if found.revision != known {
                // The revision was read just now, and only this thread changes the index.
                let _ = index.replace(NO_NODE, known, found.into(), |_, _| row);
            }
            return Ok(());
        }
        index.remove(NO_NODE, task.id, known);
        Ok(())
    }
}

/// Deletes the tasks that the batch inserted. Always writes the mark, which proves that the disk
/// works again.
fn undo_inserts(
    connection: &mut Connection,
    failed: &FailedBatch,
    mark: &Mark,
) -> Result<(), FileFault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    schema::set_mark(&transaction, mark)?;
    for task in failed.tasks.iter().filter(|task| task.from.is_none()) {
        if let Some(found) = scan::load(&transaction, task.row).map_err(body::fault)?
            && found.id == task.id
        {
            row::delete(&transaction, task.row)?;
        }
    }
    Ok(transaction.commit()?)
}

/// An id that no node has, so that every node is notified. Engines use 63 bits.
const NO_NODE: NodeId = NodeId(u64::MAX);

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
