//! A look into a store file without a lock and without a change, also while another process writes it.

use std::path::Path;

use outlast_engine::index::Index;
use outlast_engine::store::{Position, Snapshot};
use outlast_engine::{Scope, StoreError, Task, TaskId};
use outlast_wire::Raw;
use rusqlite::Connection;

use super::error::OpenError;
use super::fault::Fault;
use super::file::{self, Found};
use super::ledger::{self, Files, Trouble};
use super::row::{self, LAST_POSITION, RowId};
use super::unwritten::Changes;
use super::{body, connect, scan, schema};

/// The tasks in a file as they were at one moment.
pub struct Look {
    connection: Connection,
    index: Index<RowId>,
    /// What the tables did not have at that moment.
    unwritten: Changes,
}

impl Look {
    /// Looks into the file at `path`; `None` if there is none.
    pub fn at(path: impl AsRef<Path>) -> Result<Option<Self>, OpenError> {
        let named = path.as_ref();
        if !named.try_exists().map_err(OpenError::io(named))? {
            return Ok(None);
        }
        let path = file::resolve(named).map_err(OpenError::io(named))?;
        if file::inspect(&path)? == Found::Nothing {
            return Ok(None);
        }
        for _ in 0..LOOKS {
            match Self::at_once(&path) {
                // What was missing in the ledger has come into the tables just now.
                Err(Trouble::Gap { .. }) => {}
                looked => return looked.map(Some).map_err(|trouble| trouble.at(&path)),
            }
        }
        Self::at_once(&path)
            .map(Some)
            .map_err(|trouble| trouble.at(&path))
    }

    fn at_once(path: &Path) -> Result<Self, Trouble> {
        let files = Files::read(path)?;
        let connection = connect::reading(path).map_err(OpenError::sqlite(path))?;
        schema::require_present(&connection, path)?;
        // One transaction for all that is read: the file does not move under us.
        connection
            .execute_batch("BEGIN")
            .map_err(OpenError::sqlite(path))?;
        let unwritten = ledger::read(path, &connection, &files)?.changes;
        let index = scan::index(&connection, path, &unwritten)?;
        Ok(Self {
            connection,
            index,
            unwritten,
        })
    }

    /// Up to `limit` tasks in `scope`, newest first.
    pub fn newest(&self, scope: &Scope, limit: usize) -> Result<Vec<Task>, StoreError> {
        match scope {
            Scope::Of(owner) => {
                let page = self.index.page(owner, None::<Position>, limit);
                let ids = page.tasks.iter().map(Snapshot::id);
                ids.filter_map(|id| self.task(scope, id).transpose())
                    .collect()
            }
            Scope::Anyone => self.newest_of_all(limit).map_err(|fault| fault.error()),
        }
    }

    /// Walks over the whole file: nobody keeps a list of everybody's tasks.
    fn newest_of_all(&self, limit: usize) -> Result<Vec<Task>, Fault> {
        let newest = "SELECT row FROM opened ORDER BY row & ?1 DESC LIMIT ?2";
        let changed = &self.unwritten.tasks;
        // Those that have changed since are taken from elsewhere.
        let most = limit.saturating_add(changed.len());
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare(newest)?;
        let rows = statement.query_map([LAST_POSITION.cast_signed(), most], |row| row.get(0))?;
        let mut tasks = Vec::new();
        for row in rows {
            let row = RowId(row?);
            let task = scan::load(&self.connection, row).map_err(body::fault)?;
            let task = task.filter(|task| !changed.contains_key(&task.id));
            tasks.extend(task.map(|task| (row.position(), task)));
        }
        for (id, change) in changed {
            let (file, row) = (&self.connection, change.row);
            let task = body::newest(file, row, *id, Some(change.clone()))?;
            tasks.extend(task.map(|task| (row.position(), task)));
        }
        tasks.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
        Ok(tasks
            .into_iter()
            .take(limit)
            .map(|(_, task)| task)
            .collect())
    }

    /// A task in `scope`.
    pub fn task(&self, scope: &Scope, id: TaskId) -> Result<Option<Task>, StoreError> {
        let Some((_, row)) = self.index.find(scope, id) else {
            return Ok(None);
        };
        let change = self.unwritten.tasks.get(&id).cloned();
        body::newest(&self.connection, row, id, change).map_err(|fault| fault.error())
    }

    /// The body of a task in `scope`.
    pub fn body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        let Some((_, row)) = self.index.find(scope, id) else {
            return Ok(None);
        };
        let change = self.unwritten.tasks.get(&id);
        if let Some(image) = change.and_then(|change| change.image.as_ref()) {
            let body = row::body(&image.columns()).map_err(body::fault);
            if let Some(body) = body.map_err(|fault| fault.error())? {
                return Ok(Some(body));
            }
        }
        let found = body::body(&self.connection, row, id).map_err(|fault| fault.error())?;
        Ok(found.flatten())
    }
}

/// How often the ledger may be written anew while it is read.
const LOOKS: usize = 20;
