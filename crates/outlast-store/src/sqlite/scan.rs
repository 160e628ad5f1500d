//! Builds the index from the file: one scan over all rows when a store is opened.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use outlast_engine::TaskId;
use outlast_engine::index::{Index, StoredTask};
use outlast_engine::store::Position;
use rusqlite::Connection;

use super::error::OpenError;
use super::row::{self, BadRow, RowId};

/// Reads the part of every task that is held in memory. Bodies are not read.
pub(super) fn index(
    connection: &Connection,
    path: &Path,
    next: Position,
) -> Result<Index<RowId>, OpenError> {
    let bad = |error| match error {
        BadRow::Sqlite(error) => OpenError::sqlite(path)(error),
        nonsense @ BadRow::Nonsense { .. } => OpenError::corrupt(path, nonsense.to_string()),
    };
    let index = Index::new(next);
    for open in ended(connection, &index).map_err(bad)? {
        let task = load(connection, open).map_err(bad)?;
        let task =
            task.ok_or_else(|| OpenError::corrupt(path, "a row disappeared during the scan"))?;
        let found = StoredTask::Open(Box::new(task));
        admit(&index, found, open).map_err(bad)?;
    }
    Ok(index)
}

/// Returns the whole task in a row, if there is one.
pub(super) fn load(
    connection: &Connection,
    at: RowId,
) -> Result<Option<outlast_engine::Task>, BadRow> {
    let mut statement = connection.prepare_cached(&row::select_sql())?;
    let mut rows = statement.query([at.0])?;
    rows.next()?.map(row::task).transpose()
}

/// Admits the ended tasks and returns the rows of the others. One thread reads, another admits.
fn ended(connection: &Connection, index: &Index<RowId>) -> Result<Vec<RowId>, BadRow> {
    thread::scope(|scope| {
        let (queue, found) = mpsc::sync_channel::<Vec<(StoredTask, RowId)>>(QUEUE);
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

/// Sends the ended tasks in chunks, and returns the rows of the others.
fn read(
    connection: &Connection,
    queue: &mpsc::SyncSender<Vec<(StoredTask, RowId)>>,
) -> Result<Vec<RowId>, BadRow> {
    let (mut open, mut portion) = (Vec::new(), Vec::with_capacity(PORTION));
    let mut names = row::LastNames::default();
    let mut statement = connection.prepare(&row::select_brief_sql())?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        match row::brief_or_open(row, &mut names)? {
            (at, Some(found)) => portion.push((found, at)),
            (at, None) => open.push(at),
        }
        if portion.len() == PORTION {
            let full = std::mem::replace(&mut portion, Vec::with_capacity(PORTION));
            if queue.send(full).is_err() {
                // A task was refused. The other thread returns the error.
                return Ok(open);
            }
        }
    }
    let _ = queue.send(portion);
    Ok(open)
}

fn admit(index: &Index<RowId>, found: StoredTask, at: RowId) -> Result<(), BadRow> {
    let id = match &found {
        StoredTask::Open(task) => task.id,
        StoredTask::Ended(summary) => summary.id,
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

/// The number of tasks in a chunk.
const PORTION: usize = 512;

/// How many chunks the reading thread may be ahead.
const QUEUE: usize = 8;
