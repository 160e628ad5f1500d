//! The stored words and JSON of a task, the same in every store.

pub(crate) mod details;
pub(crate) mod text;
