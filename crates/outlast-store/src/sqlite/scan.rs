//! Builds the index from the file: one scan over all rows when a store is opened.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use outlast_engine::TaskId;
use outlast_engine::index::{Index, StoredTask};
use outlast_engine::store::Position;
use rusqlite::Connection;

use super::row::{self, RowError, RowId};
use crate::open_error::OpenError;

/// Reads the part of every task that is held in memory. Bodies are not read.
pub(super) fn index(
    connection: &Connection,
    path: &Path,
    next: Position,
) -> Result<Index<RowId>, OpenError> {
    let bad = |error| match error {
        RowError::Sqlite(error) => OpenError::sqlite(path)(error),
        invalid_value @ RowError::InvalidValue { .. } => {
            OpenError::corrupt(path, invalid_value.to_string())
        }
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
) -> Result<Option<outlast_engine::Task>, RowError> {
    let mut statement = connection.prepare_cached(&row::select_sql())?;
    let mut rows = statement.query([at.0])?;
    rows.next()?.map(row::task).transpose()
}

/// Admits the ended tasks and returns the rows of the others. One thread reads, another admits.
fn ended(connection: &Connection, index: &Index<RowId>) -> Result<Vec<RowId>, RowError> {
    thread::scope(|scope| {
        let (queue, found) = mpsc::sync_channel::<Vec<(StoredTask, RowId)>>(MAX_QUEUED_CHUNKS);
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
) -> Result<Vec<RowId>, RowError> {
    let (mut open, mut portion) = (Vec::new(), Vec::with_capacity(CHUNK_TASKS));
    let mut names = row::LastNames::default();
    let mut statement = connection.prepare(&row::select_summary_sql())?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        match row::summary_or_open(row, &mut names)? {
            (at, Some(found)) => portion.push((found, at)),
            (at, None) => open.push(at),
        }
        if portion.len() == CHUNK_TASKS {
            let full = std::mem::replace(&mut portion, Vec::with_capacity(CHUNK_TASKS));
            if queue.send(full).is_err() {
                // A task was refused. The other thread returns the error.
                return Ok(open);
            }
        }
    }
    let _ = queue.send(portion);
    Ok(open)
}

fn admit(index: &Index<RowId>, found: StoredTask, at: RowId) -> Result<(), RowError> {
    let id = match &found {
        StoredTask::Open(task) => task.id,
        StoredTask::Ended(summary) => summary.id,
    };
    if let Some(other) = index.current(id) {
        return Err(duplicate_task(id, at, other.cold));
    }
    index.restore(found, at.position(), at);
    Ok(())
}

fn duplicate_task(id: TaskId, at: RowId, other: RowId) -> RowError {
    RowError::InvalidValue {
        row: at.0,
        task: id.to_string(),
        what: format!("row {} is the same task", other.0),
    }
}

/// The number of tasks in a chunk.
const CHUNK_TASKS: usize = 512;

/// How many chunks the reading thread may be ahead.
const MAX_QUEUED_CHUNKS: usize = 8;
