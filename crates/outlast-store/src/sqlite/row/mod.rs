//! A task as a row of the view `tasks`, and back.

mod block;
mod column;
mod details;
mod id;
mod read;
mod statements;
mod text;
mod write;

pub(super) use block::{Columns, Reader, body_comes, bytes, varint, write_course, write_request};
pub(super) use column::{select_brief_sql, select_sql};
pub(super) use id::{LAST_POSITION, RowId};
pub(super) use read::{BadRow, body, brief_or_open, changed, task};
pub(super) use statements::TaskStatements;
