//! One transaction: the tables are brought to what the ledger says, up to one frame, and note which.
//!
//! Every change says how a task is, not what to do: a change that is written twice, or into a file that somebody else
//! has changed, ends in the same row.

use outlast_wire::Timestamp;
use rusqlite::{Connection, Statement};

use crate::sqlite::connect;
use crate::sqlite::fault::Fault;
use crate::sqlite::probe::{FailAs, Moment, Verdict};
use crate::sqlite::records::RecordStatements;
use crate::sqlite::row::{RowId, TaskStatements};
use crate::sqlite::unwritten::{Change, Changes};

/// The statements of the filler, prepared once for each connection.
pub(super) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    begin: Statement<'c>,
    commit: Statement<'c>,
    tasks: TaskStatements<'c>,
    records: RecordStatements<'c>,
    meta: Statement<'c>,
    used: [Statement<'c>; 2],
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connect::prepare(connection, sql);
        Ok(Self {
            connection,
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            tasks: TaskStatements::prepare(connection)?,
            records: RecordStatements::prepare(connection)?,
            meta: prepare("UPDATE meta SET value = max(value, ?2) WHERE name = ?1")?,
            used: [
                prepare("PRAGMA page_count")?,
                prepare("PRAGMA freelist_count")?,
            ],
        })
    }

    /// Writes the changes. The disk may not have them yet.
    pub(super) fn fill(
        &mut self,
        changes: &Changes,
        ask: impl Fn(Moment) -> Verdict,
    ) -> Result<(), Fault> {
        self.begin.raw_execute()?;
        let written = self.write(changes).and_then(|()| {
            if let Verdict::Fail(fail) = ask(Moment::BeforeFill) {
                return Err(fail.into());
            }
            self.commit.raw_execute()?;
            match ask(Moment::AfterFill) {
                Verdict::Go => Ok(()),
                // What is in the file already cannot lack room: it is a disk that did not confirm.
                Verdict::Fail(_) => Err(FailAs::FsyncError.into()),
            }
        });
        if written.is_err() && !self.connection.is_autocommit() {
            let undone = self.connection.execute_batch("ROLLBACK");
            return written.and(undone.map_err(Fault::from));
        }
        written
    }

    /// Deletes rows of tasks that are gone, ahead of what comes before that. It is harmless there, and makes room.
    pub(super) fn make_room(&mut self, rows: &[RowId]) -> rusqlite::Result<()> {
        self.begin.raw_execute()?;
        let deleted = rows.iter().try_for_each(|row| self.tasks.delete(*row));
        match deleted.and_then(|()| self.commit.raw_execute()) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.connection.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    /// When the next record expires.
    pub(super) fn next_expiry(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        self.records.next_expiry()
    }

    /// How many pages of the file are used.
    pub(super) fn used(&mut self) -> rusqlite::Result<u64> {
        let [all, free] = &mut self.used;
        let number = |statement: &mut Statement<'_>| {
            statement.query_row((), |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
        };
        Ok(number(all)?.saturating_sub(number(free)?))
    }

    fn write(&mut self, changes: &Changes) -> Result<(), Fault> {
        // Neighbours after each other: they share pages, and what is new goes to the end of its table.
        let mut tasks: Vec<&Change> = changes.tasks.values().collect();
        tasks.sort_unstable_by_key(|change| change.row);
        for change in tasks {
            self.change(change)?;
        }
        if let Some(now) = changes.forget {
            self.records.forget(now, FORGET)?;
        }
        for (key, record) in &changes.records {
            match record {
                Some(record) => self.records.put(record)?,
                None => self.records.delete(key)?,
            }
        }
        let next = changes.next_position.cast_signed();
        self.meta.execute(("next_position", next))?;
        let upto = changes.upto.cast_signed();
        self.meta.execute(("filled_to", upto))?;
        Ok(())
    }

    fn change(&mut self, change: &Change) -> rusqlite::Result<()> {
        let (tasks, row) = (&mut self.tasks, change.row);
        let (from, image) = match (change.from, &change.image) {
            (None, None) => return Ok(()),
            (Some(from), None) => return tasks.delete(from.row),
            (None, Some(image)) => return tasks.insert(row, &image.columns()),
            (Some(from), Some(image)) => (from, image),
        };
        let columns = image.columns();
        // A row that somebody else deleted stays deleted.
        match image.has_ended {
            _ if from.had_ended => tasks.update_ended(row, &columns).map(drop),
            true => match from.row == row || tasks.step_aside(from.row, row)? {
                true => tasks.end(row, &columns),
                false => Ok(()),
            },
            false => tasks.update(row, &columns).map(drop),
        }
    }
}

/// How many expired records one transaction deletes at most.
const FORGET: u32 = 256;
