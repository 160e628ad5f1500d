//! One transaction: what a plan says is written, and nothing else.

use outlast_engine::TaskId;
use outlast_engine::store::Reason;
use rusqlite::{Connection, Statement};

use super::op::Op;
use super::plan::{Plan, Planned};
use crate::sqlite::connect;
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::{FailAs, Moment, Verdict};
use crate::sqlite::records::RecordStatements;
use crate::sqlite::row::TaskStatements;

/// The statements of the writer, prepared once for each connection.
pub(super) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    pub(super) records: RecordStatements<'c>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    tasks: TaskStatements<'c>,
    positions: Statement<'c>,
}

/// Why a transaction did not take place, and whose fault it was.
#[derive(Debug)]
pub(super) enum Broken {
    /// Nobody's in particular.
    Batch(Fault),
    /// This task's.
    Task(TaskId, Fault),
    /// The operation's with this number.
    Op(usize, Fault),
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            records: RecordStatements::prepare(connection)?,
            begin: connect::prepare(connection, "BEGIN IMMEDIATE")?,
            commit: connect::prepare(connection, "COMMIT")?,
            tasks: TaskStatements::prepare(connection)?,
            positions: connect::prepare(
                connection,
                "UPDATE meta SET value = ?1 WHERE name = 'next_position'",
            )?,
        })
    }

    /// Writes the plan and waits for the disk. `positions` is the new limit of positions that may be
    /// given out, if there is one.
    pub(super) fn commit(
        &mut self,
        ops: &[Op],
        plan: &Plan,
        positions: Option<u64>,
        ask: impl Fn(Moment) -> Verdict,
    ) -> Result<(), Broken> {
        self.begin.raw_execute().map_err(Broken::from)?;
        let written = self.write(ops, plan, positions).and_then(|()| {
            if let Verdict::Fail(fail) = ask(Moment::BeforeCommit) {
                return Err(Broken::Batch(fail.into()));
            }
            self.commit.raw_execute().map_err(Broken::from)?;
            match ask(Moment::AfterCommit) {
                Verdict::Go => Ok(()),
                // What is in the file already cannot lack room: it is a disk that did not confirm.
                Verdict::Fail(_) => Err(Broken::Batch(FailAs::FsyncError.into())),
            }
        });
        if written.is_err() && !self.connection.is_autocommit() {
            let undone = self.connection.execute_batch("ROLLBACK");
            return written.and(undone.map_err(Broken::from));
        }
        written
    }

    fn write(&mut self, ops: &[Op], plan: &Plan, positions: Option<u64>) -> Result<(), Broken> {
        // Neighbours after each other: they share pages, and what is new goes to the end of its table.
        let mut changes: Vec<&Planned> = plan.changes.iter().collect();
        changes.sort_unstable_by_key(|change| change.row);
        for change in changes {
            self.change(ops, plan, change)
                .map_err(|fault| Broken::of(fault, |fault| Broken::Task(change.id, fault)))?;
        }
        for (number, (op, verdict)) in ops.iter().zip(&plan.verdicts).enumerate() {
            let written = match op {
                Op::Forget(now) => self.records.forget(*now, FORGET),
                op if verdict.is_done() => self.records.write(op.records()),
                _ => Ok(()),
            };
            written.map_err(|error| Broken::of(error.into(), |fault| Broken::Op(number, fault)))?;
        }
        if let Some(positions) = positions {
            self.positions
                .execute([positions.cast_signed()])
                .map_err(Broken::from)?;
        }
        Ok(())
    }

    fn change(&mut self, ops: &[Op], plan: &Plan, change: &Planned) -> Result<(), Fault> {
        let (tasks, row) = (&mut self.tasks, change.row);
        let there = match (change.from, plan.version(change, ops)) {
            // Added and removed within the batch.
            (None, None) => true,
            (Some(from), None) => {
                tasks.delete(from, change.had_ended)?;
                // A row that somebody else deleted is as gone as it should be.
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
        Err(Fault::Missing(Reason::new(gone)))
    }
}

impl Broken {
    /// Blames one culprit for what only concerns it, and nobody for the rest.
    fn of(fault: Fault, blame: impl FnOnce(Fault) -> Self) -> Self {
        match fault {
            Fault::Refused(_) | Fault::Missing(_) => blame(fault),
            Fault::Io(_) | Fault::Full(_) | Fault::Busy(_) | Fault::Damaged(_) => {
                Self::Batch(fault)
            }
        }
    }
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self::Batch(error.into())
    }
}

/// How many expired records one commit deletes at most.
const FORGET: u32 = 256;
