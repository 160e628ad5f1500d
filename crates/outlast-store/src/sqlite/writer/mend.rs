//! After a disk did not confirm: open the file anew, find out what it holds, go on from there.
//!
//! Nobody was told that the failed batch succeeded. Tasks that it added are deleted if the file has
//! them; of tasks that it changed or removed the file is right, and the engines hear of it.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use outlast_engine::store::{Health, Reason};
use outlast_engine::{NodeId, StoreError, TaskId};
use rusqlite::{Connection, TransactionBehavior};

use super::Writer;
use super::op::{Op, Reply};
use super::plan::Plan;
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::{Moment, Verdict};
use crate::sqlite::row::{self, RowId};
use crate::sqlite::{body, connect, records, scan};

/// What a failed batch leaves behind.
#[derive(Debug)]
pub(super) struct Wreck {
    pub(super) fault: Fault,
    tasks: Vec<Unsure>,
}

/// A task of which the file may hold either of two versions.
#[derive(Debug)]
struct Unsure {
    id: TaskId,
    /// Where it was, if it was there.
    from: Option<RowId>,
    /// Where it would be.
    row: RowId,
}

impl Wreck {
    pub(super) fn of(plan: &Plan, fault: Fault) -> Self {
        let tasks = plan.changes.iter().map(|change| Unsure {
            id: change.id,
            from: change.from,
            row: change.row,
        });
        let tasks = tasks.collect();
        Self { fault, tasks }
    }

    /// A failure outside of any batch.
    pub(super) fn without_tasks(fault: impl Into<Fault>) -> Self {
        Self {
            fault: fault.into(),
            tasks: Vec::new(),
        }
    }
}

impl Writer {
    /// Refuses whatever is asked until the file can be opened again, or the store is closed.
    pub(super) fn mend(&mut self, mut wreck: Wreck) -> Result<Connection, Option<Reply<()>>> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.set_health(Health::Down(wreck.fault.reason()));
            self.refuse_for(pause, &wreck.fault.error())?;
            match self.reopen(&wreck) {
                Ok(connection) => {
                    self.room.open();
                    self.set_health(Health::Ready);
                    return Ok(connection);
                }
                Err(fault) => wreck.fault = fault,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Answers everybody with `error` for a while. Fails if the store is closed meanwhile.
    fn refuse_for(&mut self, pause: Duration, error: &StoreError) -> Result<(), Option<Reply<()>>> {
        for op in self.backlog.drain(..) {
            op.refuse(error.clone());
        }
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.queue.recv_timeout(left) {
                Ok(Op::Close(reply)) => return Err(Some(reply)),
                Ok(op) => op.refuse(error.clone()),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
            }
        }
    }

    fn reopen(&mut self, wreck: &Wreck) -> Result<Connection, Fault> {
        if let Verdict::Fail(fail) = self.ask(Moment::BeforeReopen) {
            return Err(fail.into());
        }
        let mut connection = connect::writing(&self.path, &self.options)?;
        // Pages that a failed sync left in the system's cache may never reach the disk by themselves.
        // Copying the whole log into the file writes and syncs them once more.
        let busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if busy {
            let reader = "another program reads the file; recovery waits for it";
            return Err(Fault::Busy(Reason::new(reader)));
        }
        undo_additions(&mut connection, wreck)?;
        for task in wreck.tasks.iter().filter(|task| task.from.is_some()) {
            self.believe_file(&connection, task)?;
        }
        self.shared
            .expect_expiry(records::next_expiry(&connection)?);
        Ok(connection)
    }

    /// Brings the index to what the file says of a task.
    fn believe_file(&self, connection: &Connection, task: &Unsure) -> Result<(), Fault> {
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
                // The revision was read just now, and nobody else changes the index.
                let _ = index.replace(NOBODY, known, found.into(), |_, _| row);
            }
            return Ok(());
        }
        index.remove(NOBODY, task.id, known);
        Ok(())
    }
}

/// Deletes what the wreck added. Writes in any case: a disk that confirms this confirms again.
fn undo_additions(connection: &mut Connection, wreck: &Wreck) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("UPDATE meta SET value = value", ())?;
    for task in wreck.tasks.iter().filter(|task| task.from.is_none()) {
        if let Some(found) = scan::load(&transaction, task.row).map_err(body::fault)?
            && found.id == task.id
        {
            row::delete(&transaction, task.row)?;
        }
    }
    Ok(transaction.commit()?)
}

/// Nobody's name: every node hears of what is written in it. Engines draw 63 bits.
const NOBODY: NodeId = NodeId(u64::MAX);

const FIRST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);
