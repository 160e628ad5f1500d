//! A task as a row of the table `tasks`, and back.

mod column;
mod id;
mod read;
mod text;
mod write;

pub(super) use column::{delete_sql, insert_sql, select_brief_sql, select_sql, update_sql};
pub(super) use id::{LAST_POSITION, RowId};
pub(super) use read::{BadRow, brief_or_open, task};
pub(super) use write::{Change, Scratch};
