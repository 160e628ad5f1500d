//! A read-only view of a store file, without its lock, also while another process writes it.

use std::path::{Path, PathBuf};

use outlast_engine::index::Index;
use outlast_engine::store::{Filter, Position, Record};
use outlast_engine::{Scope, StoreError, Task, TaskId};
use outlast_wire::Raw;
use rusqlite::Connection;

use super::file::{self, FileState};
use super::file_fault::FileFault;
use super::lock::{self, Holder};
use super::mark::Mark;
use super::row::{LAST_POSITION, RowId};
use super::{body, connect, records, scan, schema};
use crate::open_error::OpenError;

/// The tasks in a file at the time when it was opened.
pub struct SqliteReader {
    path: PathBuf,
    connection: Connection,
    index: Index<RowId>,
}

impl SqliteReader {
    /// Opens the file at `path`. Returns `None` if it does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>, OpenError> {
        let named = path.as_ref();
        if !named.try_exists().map_err(OpenError::io(named))? {
            return Ok(None);
        }
        let path = file::resolve(named).map_err(OpenError::io(named))?;
        if file::inspect(&path)? == FileState::Nothing {
            return Ok(None);
        }
        let connection = connect::reading(&path).map_err(OpenError::sqlite(&path))?;
        schema::require_store(&connection, &path)?;
        // One transaction for everything, so that the view does not change.
        connection
            .execute_batch("BEGIN")
            .map_err(OpenError::sqlite(&path))?;
        let mark = Mark::read(&connection).map_err(OpenError::sqlite(&path))?;
        let mark = mark.ok_or_else(|| OpenError::corrupt(&path, "its mark is missing"))?;
        let index = scan::index(&connection, &path, Position(mark.next_position))?;
        Ok(Some(Self {
            path,
            connection,
            index,
        }))
    }

    /// The process that has the file open for writing now. If there is no such process, no task in
    /// the file is running.
    pub fn holder(&self) -> std::io::Result<Option<Holder>> {
        lock::holder(&self.path)
    }

    /// Up to `limit` ids in `scope` that begin with `prefix`, newest first.
    pub fn ids(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<TaskId>, StoreError> {
        let ids = self.ids_of_all(prefix).map_err(|fault| fault.error())?;
        let ids = ids.iter().filter_map(|text| text.parse().ok());
        let is_visible = |id: &TaskId| self.index.find(scope, *id).is_some();
        Ok(ids.filter(is_visible).take(limit).collect())
    }

    fn ids_of_all(&self, prefix: &str) -> Result<Vec<String>, FileFault> {
        let matching =
            "SELECT id FROM opened WHERE substr(id, 1, length(?1)) = ?1 ORDER BY row & ?2 DESC";
        let mut statement = self.connection.prepare(matching)?;
        let rows = statement.query_map((prefix, LAST_POSITION.cast_signed()), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Up to `limit` tasks that match `filter`, newest first.
    pub fn search(&self, filter: &Filter, limit: usize) -> Result<Vec<Task>, StoreError> {
        let (mut tasks, mut after) = (Vec::new(), None);
        while tasks.len() < limit {
            let page = self.index.search(filter, after, limit - tasks.len());
            for found in &page.tasks {
                tasks.extend(self.task(&Scope::AnyTask, found.id())?);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(tasks)
    }

    /// A task in `scope`.
    pub fn task(&self, scope: &Scope, id: TaskId) -> Result<Option<Task>, StoreError> {
        let Some((_, row)) = self.index.find(scope, id) else {
            return Ok(None);
        };
        body::task(&self.connection, row, id).map_err(|fault| fault.error())
    }

    /// All records, expired ones included.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        records::all(&self.connection).map_err(|error| FileFault::from(error).error())
    }

    /// The body of a task in `scope`.
    pub fn body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        let Some((_, row)) = self.index.find(scope, id) else {
            return Ok(None);
        };
        let found = body::body(&self.connection, row, id).map_err(|fault| fault.error())?;
        Ok(found.flatten())
    }
}
