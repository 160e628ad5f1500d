//! Columns of a task as a block of bytes, and back: what the ledger holds, and what the tables are filled from.
//!
//! A block is the request of a task, which never changes, or its course with the body that it brings.

use outlast_engine::Task;
use outlast_wire::Raw;
use rusqlite::types::ValueRef;

use super::column::{COLUMNS, Column};
use super::read::Source;
use super::{details, text as words};

/// Writes what never changes of a task.
pub(in crate::sqlite) fn write_request(out: &mut Vec<u8>, task: &Task) {
    let origin = &task.origin;
    text(out, Column::Id, task.id.text().as_str());
    text(out, Column::Owner, &task.owner.to_storage());
    maybe_text(out, Column::RequestKey, task.request_key.as_deref());
    number(out, Column::Created, task.created.0);
    text(out, Column::Method, &origin.method);
    maybe_text(out, Column::Tool, origin.tool.as_deref());
    text(out, Column::Runner, &origin.runner);
    number(out, Column::Accepts, origin.accepts.bits());
    maybe_text(out, Column::Retry, words::retry(origin.retry));
    let token = origin.progress_token.as_ref().map(Raw::as_str);
    maybe_text(out, Column::ProgressToken, token);
    maybe_text(out, Column::Params, origin.params.as_ref().map(Raw::as_str));
    out.push(END);
}

/// Writes what may change of a task, and its body if there is one. `scratch` is a place to put texts together.
pub(in crate::sqlite) fn write_course(
    out: &mut Vec<u8>,
    task: &Task,
    body: Option<&Raw>,
    scratch: &mut Vec<u8>,
) {
    text(out, Column::State, &words::state(&task.state));
    maybe_text(out, Column::Message, task.message.as_deref());
    number(out, Column::Updated, task.updated.0);
    number(out, Column::Ttl, task.lifetime.ttl);
    number(out, Column::PollInterval, task.poll_interval);
    number(out, Column::Revision, task.revision.0);
    number(out, Column::Attempt, task.attempt.0);
    number(out, Column::Executor, task.executor.0);
    put_together(out, Column::Timeline, scratch, |text| {
        words::timeline(text, task);
    });
    if let Some(handle) = &task.handle {
        out.push(Column::Handle as u8 | BLOB);
        bytes(out, &handle.0);
    }
    put_together(out, Column::Details, scratch, |text| {
        details::write(text, task);
    });
    maybe_text(out, Column::Body, body.map(Raw::as_str));
    out.push(END);
}

/// The columns that blocks bring; the others are null.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct Columns<'a>([ValueRef<'a>; COLUMNS]);

impl<'a> Columns<'a> {
    pub(in crate::sqlite) fn none() -> Self {
        Self([ValueRef::Null; COLUMNS])
    }

    /// Adds what a block brings. `None` if nobody wrote such a block; else where it ends.
    pub(in crate::sqlite) fn add(&mut self, block: &'a [u8]) -> Option<usize> {
        let mut reader = Reader(block);
        loop {
            let kind = reader.byte()?;
            if kind == END {
                return Some(block.len() - reader.0.len());
            }
            let column = Column::numbered(usize::from(kind & NUMBER))?;
            self.0[column as usize] = match kind & !NUMBER {
                0 => ValueRef::Integer(reader.varint()?.cast_signed()),
                TEXT => ValueRef::Text(reader.bytes()?),
                BLOB => ValueRef::Blob(reader.bytes()?),
                _ => return None,
            };
        }
    }
}

impl Columns<'_> {
    /// Forgets all columns but the body.
    pub(in crate::sqlite) fn keep_body(&mut self) {
        let body = self.0[Column::Body as usize];
        *self = Self::none();
        self.0[Column::Body as usize] = body;
    }
}

/// Whether there is a body among the columns.
pub(in crate::sqlite) fn body_comes(columns: &Columns<'_>) -> bool {
    columns.0[Column::Body as usize] != ValueRef::Null
}

impl<'a> Source<'a> for &Columns<'a> {
    fn value(&self, column: Column) -> rusqlite::Result<ValueRef<'a>> {
        Ok(self.0[column as usize])
    }
}

/// Reads what was written behind one another; `None` where nobody wrote such a thing.
pub(in crate::sqlite) struct Reader<'a>(pub(in crate::sqlite) &'a [u8]);

impl<'a> Reader<'a> {
    pub(in crate::sqlite) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    pub(in crate::sqlite) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(in crate::sqlite) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(in crate::sqlite) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Writes a number, small ones in few bytes.
pub(in crate::sqlite) fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes bytes with their number before them.
pub(in crate::sqlite) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, column: Column, number: impl Into<u64>) {
    out.push(column as u8);
    varint(out, number.into());
}

fn text(out: &mut Vec<u8>, column: Column, text: &str) {
    out.push(column as u8 | TEXT);
    bytes(out, text.as_bytes());
}

fn maybe_text(out: &mut Vec<u8>, column: Column, value: Option<&str>) {
    if let Some(value) = value {
        text(out, column, value);
    }
}

/// Writes the text that `write` writes, unless it writes nothing.
fn put_together(
    out: &mut Vec<u8>,
    column: Column,
    scratch: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    scratch.clear();
    write(scratch);
    if !scratch.is_empty() {
        out.push(column as u8 | TEXT);
        bytes(out, scratch);
    }
}

/// The part of a column's first byte that is its number.
const NUMBER: u8 = 0x1f;

// What its value is; a number if it is neither.
const TEXT: u8 = 0x20;
const BLOB: u8 = 0x40;

/// Behind the last column.
const END: u8 = 0xff;
