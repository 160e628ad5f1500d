//! Conversion of a task to a row of the view `tasks`, and back.

mod columns;
mod id;
mod read;
mod statements;
mod write;

pub(super) use columns::{select_sql, select_summary_sql};
pub(super) use id::{LAST_POSITION, RowId};
pub(super) use read::{LastNames, RowError, summary_or_open, task};
pub(super) use statements::{TaskStatements, delete};
