//! The statements that change tasks, and the choice among them.

use outlast_engine::Task;
use outlast_wire::Raw;
use rusqlite::{Connection, Result, Statement};

use super::RowId;
use super::columns::{self, Column, PREVIOUS_ROW_INDEX};
use super::write::{BoundStatement, Scratch, bind_immutable, bind_mutable};
use crate::sqlite::connect;

/// The statements that change tasks, prepared once per connection.
pub(in crate::sqlite) struct TaskStatements<'c> {
    insert: BoundStatement<'c>,
    update: BoundStatement<'c>,
    step_aside: Statement<'c>,
    end: BoundStatement<'c>,
    update_ended: BoundStatement<'c>,
    delete: Statement<'c>,
    delete_ended: Statement<'c>,
    scratch: Scratch,
}

impl<'c> TaskStatements<'c> {
    pub(in crate::sqlite) fn prepare(connection: &'c Connection) -> Result<Self> {
        let prepared = |sql: String| connect::prepare(connection, &sql).map(BoundStatement::new);
        Ok(Self {
            insert: prepared(columns::insert_opened_sql())?,
            update: prepared(columns::update_opened_sql())?,
            step_aside: connect::prepare(connection, &columns::move_sql())?,
            end: prepared(columns::insert_ended_sql())?,
            update_ended: prepared(columns::update_ended_sql())?,
            delete: connect::prepare(connection, DELETE_OPENED)?,
            delete_ended: connect::prepare(connection, DELETE_ENDED)?,
            scratch: Scratch::default(),
        })
    }

    /// Inserts a task, with its body if it has already ended.
    pub(in crate::sqlite) fn insert(
        &mut self,
        row: RowId,
        task: &Task,
        body: Option<&Raw>,
    ) -> Result<()> {
        let to = &mut self.insert;
        to.bind(Column::Row, row.0)?;
        bind_immutable(to, task)?;
        bind_mutable(to, task, &mut self.scratch)?;
        to.execute()?;
        match task.state.ending() {
            Some(_) => self.add_end(row, task, body),
            None => Ok(()),
        }
    }

    /// Updates a task that has not ended. Returns whether it was found.
    pub(in crate::sqlite) fn update(&mut self, row: RowId, task: &Task) -> Result<bool> {
        let to = &mut self.update;
        to.bind(Column::Row, row.0)?;
        bind_mutable(to, task, &mut self.scratch)?;
        to.execute()
    }

    /// Inserts the end of the task at `from`, which moves to `row`. Returns false if a task that
    /// had to move was not found.
    pub(in crate::sqlite) fn end(
        &mut self,
        from: RowId,
        row: RowId,
        task: &Task,
        body: Option<&Raw>,
    ) -> Result<bool> {
        if row != from {
            let to = &mut self.step_aside;
            to.raw_bind_parameter(Column::Row.parameter(), row.0)?;
            to.raw_bind_parameter(PREVIOUS_ROW_INDEX, from.0)?;
            if to.raw_execute()? == 0 {
                return Ok(false);
            }
        }
        self.add_end(row, task, body)?;
        Ok(true)
    }

    /// Updates a task that has ended. Returns whether it was found.
    pub(in crate::sqlite) fn update_ended(
        &mut self,
        row: RowId,
        task: &Task,
        body: Option<&Raw>,
    ) -> Result<bool> {
        let to = &mut self.update_ended;
        to.bind(Column::Row, row.0)?;
        to.bind_or_null(Column::Body, body.map(Raw::as_str))?;
        bind_mutable(to, task, &mut self.scratch)?;
        to.execute()
    }

    pub(in crate::sqlite) fn delete(&mut self, row: RowId, had_ended: bool) -> Result<()> {
        self.delete.execute([row.0])?;
        if had_ended {
            self.delete_ended.execute([row.0])?;
        }
        Ok(())
    }

    fn add_end(&mut self, row: RowId, task: &Task, body: Option<&Raw>) -> Result<()> {
        let to = &mut self.end;
        to.bind(Column::Row, row.0)?;
        to.bind_or_null(Column::Body, body.map(Raw::as_str))?;
        bind_mutable(to, task, &mut self.scratch)?;
        to.execute()?;
        Ok(())
    }
}

/// Deletes the task in a row, without prepared statements.
pub(in crate::sqlite) fn delete(connection: &Connection, row: RowId) -> Result<()> {
    for sql in [DELETE_OPENED, DELETE_ENDED] {
        connection.execute(sql, [row.0])?;
    }
    Ok(())
}

const DELETE_OPENED: &str = "DELETE FROM opened WHERE row = ?1";

const DELETE_ENDED: &str = "DELETE FROM ended WHERE row = ?1";
