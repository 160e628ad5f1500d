//! Binds a task to the parameters of a statement.

use outlast_engine::Task;
use outlast_wire::Raw;
use rusqlite::types::Null;
use rusqlite::{Result, Statement, ToSql};

use super::columns::{COLUMNS, Column};
use crate::encoding::{details, text};

/// A statement whose parameters are columns. They keep their values from one execution to the next,
/// so a value that consecutive tasks share is bound once.
pub(super) struct BoundStatement<'c> {
    statement: Statement<'c>,
    /// The columns that are not null. Most nullable columns are null most of the time.
    not_null: u32,
    numbers: [Option<i64>; COLUMNS],
    texts: [Option<String>; COLUMNS],
}

impl<'c> BoundStatement<'c> {
    pub(super) fn new(statement: Statement<'c>) -> Self {
        Self {
            statement,
            not_null: 0,
            numbers: [None; COLUMNS],
            texts: [const { None }; COLUMNS],
        }
    }

    /// For columns that differ for every task.
    pub(super) fn bind(&mut self, column: Column, value: impl ToSql) -> Result<()> {
        self.statement.raw_bind_parameter(column.parameter(), value)
    }

    /// For numbers that many tasks share. Such a column must not be bound in another way.
    fn bind_number(&mut self, column: Column, number: i64) -> Result<()> {
        let bound = column as usize;
        if self.numbers[bound] != Some(number) {
            self.numbers[bound] = None;
            self.bind(column, number)?;
            self.numbers[bound] = Some(number);
        }
        Ok(())
    }

    /// For short texts that many tasks share. Such a column must not be bound in another way.
    fn bind_text(&mut self, column: Column, text: &str) -> Result<()> {
        let bound = column as usize;
        if self.texts[bound].as_deref() != Some(text) {
            let mut buffer = self.texts[bound].take().unwrap_or_default();
            self.bind(column, text)?;
            buffer.clear();
            buffer.push_str(text);
            self.texts[bound] = Some(buffer);
        }
        Ok(())
    }

    fn bind_text_or_null(&mut self, column: Column, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => {
                self.not_null |= bit(column);
                self.bind_text(column, text)
            }
            None => {
                self.texts[column as usize] = None;
                self.bind_or_null(column, text)
            }
        }
    }

    /// For nullable columns. Such a column must not be bound in another way.
    pub(super) fn bind_or_null(&mut self, column: Column, value: Option<impl ToSql>) -> Result<()> {
        match value {
            Some(value) => {
                self.not_null |= bit(column);
                self.bind(column, value)
            }
            None if self.not_null & bit(column) == 0 => Ok(()),
            None => {
                self.bind(column, Null)?;
                self.not_null &= !bit(column);
                Ok(())
            }
        }
    }

    /// Returns whether a row was changed.
    pub(super) fn execute(&mut self) -> Result<bool> {
        Ok(self.statement.raw_execute()? == 1)
    }
}

fn bit(column: Column) -> u32 {
    1 << column as u32
}

/// A buffer for text before it is bound.
#[derive(Default)]
pub(super) struct Scratch(Vec<u8>);

impl Scratch {
    /// Returns the text that `write` writes, or `None` if it writes nothing.
    fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Option<&str> {
        self.0.clear();
        write(&mut self.0);
        let text = std::str::from_utf8(&self.0).expect("JSON writers make UTF-8");
        (!text.is_empty()).then_some(text)
    }
}

/// Binds the columns that never change.
pub(super) fn bind_immutable(to: &mut BoundStatement<'_>, task: &Task) -> Result<()> {
    let origin = &task.origin;
    to.bind(Column::Id, task.id.text().as_str())?;
    to.bind_text(Column::Owner, &task.owner.to_storage())?;
    to.bind_or_null(Column::RequestKey, task.request_key.as_deref())?;
    to.bind(Column::Created, task.created.0.cast_signed())?;
    to.bind_text(Column::Method, &origin.method)?;
    to.bind_text_or_null(Column::Tool, origin.tool.as_deref())?;
    to.bind_text(Column::Runner, &origin.runner)?;
    to.bind_number(Column::Accepts, origin.accepts.bits().into())?;
    to.bind_or_null(Column::Retry, text::retry(origin.retry))?;
    let token = origin.progress_token.as_ref().map(Raw::as_str);
    to.bind_or_null(Column::ProgressToken, token)?;
    to.bind_or_null(Column::Params, origin.params.as_ref().map(Raw::as_str))
}

/// Binds the columns that change.
pub(super) fn bind_mutable(
    to: &mut BoundStatement<'_>,
    task: &Task,
    scratch: &mut Scratch,
) -> Result<()> {
    to.bind_text(Column::State, &text::state(&task.state))?;
    to.bind_or_null(Column::Message, task.message.as_deref())?;
    to.bind(Column::Updated, task.updated.0.cast_signed())?;
    to.bind_number(Column::Ttl, task.lifetime.ttl_ms.cast_signed())?;
    to.bind_number(Column::PollInterval, task.poll_interval_ms.into())?;
    to.bind_number(Column::Revision, task.revision.0.into())?;
    to.bind_number(Column::Attempt, task.attempt.0.into())?;
    to.bind_number(Column::Executor, task.executor.0.cast_signed())?;
    let timeline = scratch.text(|out| text::timeline(out, task));
    to.bind_or_null(Column::Timeline, timeline)?;
    let resume_state = task.resume_state.as_ref().map(|state| &*state.0);
    to.bind_or_null(Column::Handle, resume_state)?;
    let details = scratch.text(|out| details::write(out, task));
    to.bind_or_null(Column::Details, details)
}
