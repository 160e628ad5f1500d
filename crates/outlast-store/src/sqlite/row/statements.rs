//! The statements that change tasks.

use rusqlite::{Connection, Result, Statement};

use super::RowId;
use super::block::Columns;
use super::column::{self, ALL, COURSE, Column, OLD_ROW};
use super::write::Prepared;
use crate::sqlite::connect;

/// The statements that change tasks, prepared once for each connection. Most say whether there was something to change.
pub(in crate::sqlite) struct TaskStatements<'c> {
    insert: Prepared<'c>,
    update: Prepared<'c>,
    step_aside: Statement<'c>,
    end: Prepared<'c>,
    update_ended: [Prepared<'c>; 2],
    delete: [Statement<'c>; 2],
}

impl<'c> TaskStatements<'c> {
    pub(in crate::sqlite) fn prepare(connection: &'c Connection) -> Result<Self> {
        let prepared = |sql: String, columns: &[&[Column]]| {
            let statement = connect::prepare(connection, &sql)?;
            Ok::<_, rusqlite::Error>(Prepared::new(statement, columns.concat()))
        };
        let delete = |table| {
            let sql = format!("DELETE FROM {table} WHERE row = ?1");
            connect::prepare(connection, &sql)
        };
        let (opened, ended, body) = ("opened", "ended", &[Column::Body][..]);
        Ok(Self {
            insert: prepared(column::insert_opened_sql(), &[&ALL[1..]])?,
            update: prepared(column::update_opened_sql(), &[COURSE])?,
            step_aside: connect::prepare(connection, &column::move_sql())?,
            end: prepared(column::insert_ended_sql(), &[COURSE, body])?,
            update_ended: [
                prepared(column::update_ended_sql(ended), &[COURSE, body])?,
                prepared(column::update_ended_sql(opened), &[COURSE, body])?,
            ],
            delete: [delete(opened)?, delete(ended)?],
        })
    }

    /// Adds a task, with its body if it has ended already.
    pub(in crate::sqlite) fn insert(&mut self, row: RowId, task: &Columns<'_>) -> Result<()> {
        self.insert.execute(row, task).map(drop)
    }

    /// Changes a task that goes on.
    pub(in crate::sqlite) fn update(&mut self, row: RowId, task: &Columns<'_>) -> Result<bool> {
        self.update.execute(row, task)
    }

    /// Moves a task that goes on to another row.
    pub(in crate::sqlite) fn step_aside(&mut self, from: RowId, row: RowId) -> Result<bool> {
        let to = &mut self.step_aside;
        to.raw_bind_parameter(Column::Row.parameter(), row.0)?;
        to.raw_bind_parameter(OLD_ROW, from.0)?;
        Ok(to.raw_execute()? == 1)
    }

    /// Adds what became of the task in `row`.
    pub(in crate::sqlite) fn end(&mut self, row: RowId, task: &Columns<'_>) -> Result<()> {
        self.end.execute(row, task).map(drop)
    }

    /// Changes a task that has ended; without a body it keeps the one it has.
    pub(in crate::sqlite) fn update_ended(
        &mut self,
        row: RowId,
        task: &Columns<'_>,
    ) -> Result<bool> {
        for update in &mut self.update_ended {
            if update.execute(row, task)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a task.
    pub(in crate::sqlite) fn delete(&mut self, row: RowId) -> Result<()> {
        for delete in &mut self.delete {
            delete.execute([row.0])?;
        }
        Ok(())
    }
}
