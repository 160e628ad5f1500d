//! Conversion of a task to a row of the view `tasks`, and back.

mod columns;
mod details;
mod id;
mod read;
mod statements;
mod text;
mod write;

pub(super) use columns::{select_brief_sql, select_sql};
pub(super) use id::{LAST_POSITION, RowId};
pub(super) use read::{BadRow, LastNames, brief_or_open, task};
pub(super) use statements::{TaskStatements, delete};
