//! Reads bodies and whole ended tasks from the file.
//!
//! A row may move or be deleted between the lookup in the index and the read of the file. A reader
//! that misses it repeats the lookup.

use outlast_engine::store::{Health, Reason};
use outlast_engine::{StoreError, Task, TaskId};
use outlast_wire::{Raw, RawRef};
use rusqlite::Connection;
use tokio::sync::watch;

use super::file_fault::FileFault;
use super::row::{RowError, RowId};
use super::scan;

/// Returns the whole task, if it is in that row.
pub(super) fn task(file: &Connection, row: RowId, id: TaskId) -> Result<Option<Task>, FileFault> {
    let found = scan::load(file, row).map_err(fault)?;
    Ok(found.filter(|task| task.id == id))
}

/// Returns the body of a task, if the task is in that row.
pub(super) fn body(
    file: &Connection,
    row: RowId,
    id: TaskId,
) -> Result<Option<Option<Raw>>, FileFault> {
    let mut statement = file.prepare_cached("SELECT id, body FROM tasks WHERE row = ?1")?;
    let mut rows = statement.query([row.0])?;
    let Some(found) = rows.next()? else {
        return Ok(None);
    };
    let is_task = |text: Result<&str, _>| text.is_ok_and(|text| text == id.text().as_str());
    if !is_task(found.get_ref(0)?.as_str()) {
        return Ok(None);
    }
    let damaged = |what: String| {
        let what = format!("row {} (task {id}): its body is not JSON: {what}", row.0);
        FileFault::Damaged(Reason::new(what))
    };
    let text = found.get_ref(1)?.as_str_or_null();
    let text = text.map_err(|error| damaged(error.to_string()))?;
    let body = text.map(|text| RawRef::parse(text).map(RawRef::to_raw));
    let body = body
        .transpose()
        .map_err(|error| damaged(error.to_string()))?;
    Ok(Some(body))
}

/// Counts how often a row was not where the index says.
#[derive(Debug, Default)]
pub(super) struct MissedRow(u32);

impl MissedRow {
    /// Returns if the lookup is to be repeated. Between a commit and its publication a row can be
    /// missed briefly. While the store is down, only its recovery shows where the row is.
    pub(super) async fn retry(
        &mut self,
        id: TaskId,
        row: RowId,
        health: &watch::Sender<Health>,
    ) -> Result<(), StoreError> {
        self.0 += 1;
        if let Health::Down(reason) = &*health.borrow() {
            return Err(StoreError::Unavailable(reason.clone()));
        }
        if self.0 > MAX_RETRIES {
            let what = format!("task {id} is not in row {} of the file", row.0);
            return Err(StoreError::Corrupt(Reason::new(what)));
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// Converts the reason why a row cannot be read.
pub(super) fn fault(bad: RowError) -> FileFault {
    match bad {
        RowError::Sqlite(error) => error.into(),
        invalid_value @ RowError::InvalidValue { .. } => {
            FileFault::Damaged(Reason::new(invalid_value.to_string()))
        }
    }
}

/// The maximum number of retries. Each takes ten microseconds or more in a reader.
const MAX_RETRIES: u32 = 10_000;
