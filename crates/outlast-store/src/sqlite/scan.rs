//! From the file to the index: one walk over all rows when a store is opened.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use outlast_engine::index::{Found, Index};
use outlast_engine::store::{Brief, Position};
use outlast_engine::{NodeId, Task, TaskId};
use rusqlite::{Connection, OptionalExtension};

use super::body;
use super::error::OpenError;
use super::row::{self, BadRow, RowId};
use super::unwritten::Changes;

/// Reads what is kept in memory of every task, in the tables and in `changes`, which they do not have. Bodies are not
/// touched.
pub(super) fn index(
    connection: &Connection,
    path: &Path,
    changes: &Changes,
) -> Result<Index<RowId>, OpenError> {
    let bad = |error| match error {
        BadRow::Sqlite(error) => OpenError::sqlite(path)(error),
        nonsense @ BadRow::Nonsense { .. } => OpenError::corrupt(path, nonsense.to_string()),
    };
    let first = first_position(connection).map_err(OpenError::sqlite(path))?;
    let first = first.ok_or_else(|| OpenError::corrupt(path, "it does not say `next_position`"))?;
    let index = Index::new(first.max(Position(changes.next_position)));
    for open in ended(connection, &index).map_err(bad)? {
        let task = load(connection, open).map_err(bad)?;
        let task = task.ok_or_else(|| OpenError::corrupt(path, "a row vanished"))?;
        let found = Found::Open(Box::new(task));
        admit(&index, found, open).map_err(bad)?;
    }
    // All that was goes first: a request key may have passed from one task to another.
    for id in changes.tasks.keys() {
        if let Some(known) = index.current(*id) {
            index.remove(NOBODY, *id, known.revision);
        }
    }
    for (id, change) in &changes.tasks {
        if change.image.is_none() {
            continue;
        }
        let task = body::newest(connection, change.row, *id, Some(change.clone()));
        let task = task.map_err(|fault| OpenError::corrupt(path, fault.reason().to_string()))?;
        let task = task.ok_or_else(|| {
            OpenError::corrupt(
                path,
                format!("its ledger changes task {id}, which it does not have"),
            )
        })?;
        let found = match Brief::of(&task) {
            Some(brief) => Found::Ended(brief),
            None => Found::Open(Box::new(task)),
        };
        admit(&index, found, change.row).map_err(bad)?;
    }
    Ok(index)
}

/// The whole task at a row, if there is one.
pub(super) fn load(connection: &Connection, at: RowId) -> Result<Option<Task>, BadRow> {
    let mut statement = connection.prepare_cached(&row::select_sql())?;
    let mut rows = statement.query([at.0])?;
    rows.next()?.map(row::task).transpose()
}

/// Admits the ended tasks; returns the others. One thread reads, another admits.
fn ended(connection: &Connection, index: &Index<RowId>) -> Result<Vec<RowId>, BadRow> {
    thread::scope(|scope| {
        let (queue, found) = mpsc::sync_channel::<Vec<(Found, RowId)>>(QUEUE);
        let admitting = scope.spawn(move || {
            let mut found = found.into_iter().flatten();
            found.try_for_each(|(found, at)| admit(index, found, at))
        });
        let open = read(connection, &queue);
        drop(queue);
        match admitting.join() {
            Ok(admitted) => admitted.and(open),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Sends the ended tasks on, a portion at a time; returns the others.
fn read(
    connection: &Connection,
    queue: &mpsc::SyncSender<Vec<(Found, RowId)>>,
) -> Result<Vec<RowId>, BadRow> {
    let (mut open, mut portion) = (Vec::new(), Vec::with_capacity(PORTION));
    let mut owner = None;
    let mut statement = connection.prepare(&row::select_brief_sql())?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        match row::brief_or_open(row, &mut owner)? {
            (at, Some(found)) => portion.push((found, at)),
            (at, None) => open.push(at),
        }
        if portion.len() == PORTION {
            let full = std::mem::replace(&mut portion, Vec::with_capacity(PORTION));
            if queue.send(full).is_err() {
                // Something could not be admitted, and the other thread will say what.
                return Ok(open);
            }
        }
    }
    let _ = queue.send(portion);
    Ok(open)
}

fn admit(index: &Index<RowId>, found: Found, at: RowId) -> Result<(), BadRow> {
    let id = match &found {
        Found::Open(task) => task.id,
        Found::Ended(brief) => brief.id,
    };
    if let Some(other) = index.current(id) {
        return Err(twice(id, at, other.cold));
    }
    index.restore(found, at.position(), at);
    Ok(())
}

fn twice(id: TaskId, at: RowId, other: RowId) -> BadRow {
    BadRow::Nonsense {
        row: at.0,
        task: id.to_string(),
        what: format!("row {} is the same task", other.0),
    }
}

fn first_position(connection: &Connection) -> rusqlite::Result<Option<Position>> {
    let next = connection
        .query_row(
            "SELECT value FROM meta WHERE name = 'next_position'",
            (),
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    Ok(next.map(|next| Position(next.cast_unsigned())))
}

/// Nobody's name. Engines draw 63 bits.
const NOBODY: NodeId = NodeId(u64::MAX);

/// How many tasks go from the thread that reads to the one that admits at a time.
const PORTION: usize = 512;

/// How many portions the one may be ahead of the other.
const QUEUE: usize = 8;
