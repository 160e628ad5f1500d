//! A change of a task or a record as bytes, and back.
//!
//! A new task brings its request and its course, a change only its course: a large request is written once.

use std::sync::Arc;

use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{Owner, Task, TaskId};
use outlast_wire::{Raw, Timestamp};

use crate::sqlite::row::{
    Columns, Reader, RowId, body_comes, bytes, varint, write_course, write_request,
};
use crate::sqlite::unwritten::{Block, Image, Stood};

/// Writes entries behind one another.
#[derive(Debug)]
pub(in crate::sqlite) struct Entries<'b> {
    out: &'b mut Vec<u8>,
    scratch: &'b mut Vec<u8>,
}

/// Where the blocks of a task begin in a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct Blocks {
    pub(in crate::sqlite) request: Option<usize>,
    pub(in crate::sqlite) course: usize,
    /// Whether the course brings a body.
    pub(in crate::sqlite) has_body: bool,
    pub(in crate::sqlite) has_ended: bool,
}

impl Blocks {
    /// The task whose blocks these are, in that frame.
    pub(in crate::sqlite) fn image(self, frame: &Arc<Vec<u8>>) -> Image {
        let block = |at| Block {
            frame: frame.clone(),
            at,
        };
        Image {
            request: self.request.map(block),
            course: block(self.course),
            has_body: self.has_body,
            body: None,
            has_ended: self.has_ended,
        }
    }
}

/// An entry that was read. Where blocks begin is counted from the beginning of the frame.
pub(super) enum Entry {
    Added(TaskId, RowId, Blocks),
    Changed(TaskId, Stood, RowId, Blocks),
    Gone(TaskId, Stood),
    /// A task that came and went at once had this row.
    Passed(RowId),
    Record(RecordWrite),
}

impl<'b> Entries<'b> {
    pub(in crate::sqlite) fn new(out: &'b mut Vec<u8>, scratch: &'b mut Vec<u8>) -> Self {
        Self { out, scratch }
    }

    /// A task that was not there.
    pub(in crate::sqlite) fn added(
        &mut self,
        row: RowId,
        task: &Task,
        body: Option<&Raw>,
    ) -> Blocks {
        self.out.push(ADDED);
        self.id(task.id);
        self.row(row);
        self.out.push(task.state.ending().is_some().into());
        let request = self.out.len();
        write_request(self.out, task);
        Blocks {
            request: Some(request),
            ..self.course(task, body)
        }
    }

    /// A task that was there.
    pub(in crate::sqlite) fn changed(
        &mut self,
        from: Stood,
        row: RowId,
        task: &Task,
        body: Option<&Raw>,
    ) -> Blocks {
        self.out.push(CHANGED);
        self.id(task.id);
        self.stood(from);
        self.row(row);
        self.out.push(task.state.ending().is_some().into());
        self.course(task, body)
    }

    /// A task that is there no more.
    pub(in crate::sqlite) fn gone(&mut self, id: TaskId, from: Stood) {
        self.out.push(GONE);
        self.id(id);
        self.stood(from);
    }

    /// A task that came and went at once: its place is not given again.
    pub(in crate::sqlite) fn passed(&mut self, row: RowId) {
        self.out.push(PASSED);
        self.row(row);
    }

    /// A change of a record.
    pub(in crate::sqlite) fn record(&mut self, write: &RecordWrite) {
        match write {
            RecordWrite::Put(record) => {
                self.out.push(PUT);
                self.key(&record.key);
                let owner = record.owner.as_ref().map(Owner::to_storage);
                maybe(self.out, owner, |out, owner| bytes(out, owner.as_bytes()));
                maybe(self.out, record.expires, |out, at| varint(out, at.0));
                bytes(self.out, &record.bytes);
            }
            RecordWrite::Delete(key) => {
                self.out.push(DELETED);
                self.key(key);
            }
        }
    }

    fn course(&mut self, task: &Task, body: Option<&Raw>) -> Blocks {
        let course = self.out.len();
        write_course(self.out, task, body, self.scratch);
        Blocks {
            request: None,
            course,
            has_body: body.is_some(),
            has_ended: task.state.ending().is_some(),
        }
    }

    fn id(&mut self, id: TaskId) {
        self.out.extend_from_slice(&id.bits().to_le_bytes());
    }

    fn stood(&mut self, stood: Stood) {
        self.row(stood.row);
        self.out.push(stood.had_ended.into());
    }

    fn row(&mut self, row: RowId) {
        varint(self.out, row.0.cast_unsigned());
    }

    fn key(&mut self, key: &RecordKey) {
        bytes(self.out, key.kind.as_bytes());
        bytes(self.out, key.key.as_bytes());
    }
}

/// Reads the entries of a frame that begin at `at`; `None` for one that nobody wrote, which is the last.
pub(super) fn read(frame: &[u8], at: usize) -> impl Iterator<Item = Option<Entry>> {
    let mut left = Some(EntryReader { frame, at });
    std::iter::from_fn(move || {
        let reader = left.as_mut()?;
        if reader.at == frame.len() {
            return None;
        }
        let entry = reader.entry();
        if entry.is_none() {
            left = None;
        }
        Some(entry)
    })
}

struct EntryReader<'a> {
    frame: &'a [u8],
    at: usize,
}

impl EntryReader<'_> {
    fn entry(&mut self) -> Option<Entry> {
        let kind = self.next(|from| from.byte())?;
        Some(match kind {
            ADDED => {
                let (id, row) = (self.next(id)?, self.next(row)?);
                let has_ended = self.next(flag)?;
                let request = self.at;
                self.block()?;
                let request = Some(request);
                Entry::Added(
                    id,
                    row,
                    Blocks {
                        request,
                        ..self.course(has_ended)?
                    },
                )
            }
            CHANGED => {
                let (id, from, row) = (self.next(id)?, self.next(stood)?, self.next(row)?);
                let has_ended = self.next(flag)?;
                Entry::Changed(id, from, row, self.course(has_ended)?)
            }
            GONE => Entry::Gone(self.next(id)?, self.next(stood)?),
            PASSED => Entry::Passed(self.next(row)?),
            PUT => Entry::Record(RecordWrite::Put(Record {
                key: self.next(key)?,
                owner: self.next(|from| perhaps(from, |from| text(from)?.parse().ok()))?,
                expires: self
                    .next(|from| perhaps(from, Reader::varint))?
                    .map(Timestamp),
                bytes: self.next(|from| from.bytes().map(Into::into))?,
            })),
            DELETED => Entry::Record(RecordWrite::Delete(self.next(key)?)),
            _ => return None,
        })
    }

    fn course(&mut self, has_ended: bool) -> Option<Blocks> {
        let course = self.at;
        let columns = self.block()?;
        Some(Blocks {
            request: None,
            course,
            has_body: body_comes(&columns),
            has_ended,
        })
    }

    /// Passes over a block.
    fn block(&mut self) -> Option<Columns<'_>> {
        let mut columns = Columns::none();
        self.at += columns.add(&self.frame[self.at..])?;
        Some(columns)
    }

    fn next<'a, T>(&'a mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<T> {
        let mut reader = Reader(&self.frame[self.at..]);
        let value = read(&mut reader)?;
        self.at = self.frame.len() - reader.0.len();
        Some(value)
    }
}

fn id(from: &mut Reader<'_>) -> Option<TaskId> {
    let bits = from.take(16)?.try_into().ok()?;
    Some(TaskId::from_bits(u128::from_le_bytes(bits)))
}

fn stood(from: &mut Reader<'_>) -> Option<Stood> {
    let row = row(from)?;
    let had_ended = flag(from)?;
    Some(Stood { row, had_ended })
}

fn row(from: &mut Reader<'_>) -> Option<RowId> {
    from.varint().map(|row| RowId(row.cast_signed()))
}

fn flag(from: &mut Reader<'_>) -> Option<bool> {
    from.byte().map(|byte| byte != 0)
}

fn key(from: &mut Reader<'_>) -> Option<RecordKey> {
    Some(RecordKey::new(text(from)?, text(from)?))
}

fn text<'a>(from: &mut Reader<'a>) -> Option<&'a str> {
    std::str::from_utf8(from.bytes()?).ok()
}

fn perhaps<'a, T>(
    from: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match flag(from)? {
        true => read(from).map(Some),
        false => Some(None),
    }
}

fn maybe<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        write(out, value);
    }
}

// Kinds of entries. A number is never given another meaning.
const ADDED: u8 = 1;
const CHANGED: u8 = 2;
const GONE: u8 = 3;
const PASSED: u8 = 4;
const PUT: u8 = 5;
const DELETED: u8 = 6;
