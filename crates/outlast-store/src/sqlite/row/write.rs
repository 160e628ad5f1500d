//! A statement whose parameters are columns.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Result, Statement};

use super::RowId;
use super::block::Columns;
use super::column::{COLUMNS, Column};
use super::read::Source;

/// A statement whose parameters are columns. They keep their values from one execution to the next: what is the same for
/// many tasks in a row is bound once.
pub(super) struct Prepared<'c> {
    statement: Statement<'c>,
    columns: Vec<Column>,
    bound: [Bound; COLUMNS],
}

/// What is known of the value of a parameter.
enum Bound {
    Null,
    Number(i64),
    Text(Vec<u8>),
    /// Something that is the task's own.
    Own,
}

impl<'c> Prepared<'c> {
    /// The statement takes the row and these columns.
    pub(super) fn new(statement: Statement<'c>, columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            statement,
            columns: columns.into_iter().collect(),
            bound: [const { Bound::Null }; COLUMNS],
        }
    }

    /// Executes the statement for the task in `row`; says whether a row was changed.
    pub(super) fn execute(&mut self, row: RowId, values: &Columns<'_>) -> Result<bool> {
        bind(&mut self.statement, Column::Row, ValueRef::Integer(row.0))?;
        for column in &self.columns {
            let value = values.value(*column)?;
            let bound = &mut self.bound[*column as usize];
            if !bound.is(value) {
                *bound = Bound::Own;
                bind(&mut self.statement, *column, value)?;
                *bound = Bound::to(*column, value);
            }
        }
        Ok(self.statement.raw_execute()? == 1)
    }
}

impl Bound {
    fn is(&self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (Self::Null, ValueRef::Null) => true,
            (Self::Number(known), ValueRef::Integer(number)) => *known == number,
            (Self::Text(known), ValueRef::Text(text)) => known == text,
            (_, _) => false,
        }
    }

    fn to(column: Column, value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Number(number),
            ValueRef::Text(text) if column.is_common() => Self::Text(text.to_owned()),
            _ => Self::Own,
        }
    }
}

fn bind(statement: &mut Statement<'_>, column: Column, value: ValueRef<'_>) -> Result<()> {
    let value = ToSqlOutput::Borrowed(value);
    statement.raw_bind_parameter(column.parameter(), value)
}
