//! The tables, their version, and the mark.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::connect;
use super::file;
use super::mark::Mark;
use super::options::SqliteOptions;
use crate::open_error::OpenError;

/// The SQLite application id of a store: `OutS`.
pub(super) const APPLICATION: u32 = 0x4f75_7453;

/// The application id of builds before the first release, whose format is not supported: `OutL`.
pub(super) const UNRELEASED_APPLICATION: u32 = 0x4f75_744c;

/// The schema version that this program writes.
pub(super) const VERSION: u32 = 1;

/// The page with the mark: the root of the first table, after the header and the first pointer map.
pub(super) const MARK_PAGE: u32 = 3;

/// Replaces the mark.
pub(super) const SET_MARK: &str = "UPDATE meta SET value = ?1 WHERE name = 'mark'";

/// Creates the file at `path`, completely or not at all.
pub(super) fn create(path: &Path, options: &SqliteOptions) -> Result<(), OpenError> {
    let draft = file::draft(path).map_err(OpenError::io(path))?;
    drop(file::open_private(&draft).map_err(OpenError::io(&draft))?);
    let refused = || OpenError::sqlite(&draft);
    let mut connection = connect::creating(&draft, options).map_err(refused())?;
    connection
        .pragma_update(None, "application_id", APPLICATION)
        .map_err(refused())?;
    fill(&mut connection).map_err(refused())?;
    // Closing the last connection moves everything into the file that is renamed.
    connection.close().map_err(|(_, error)| refused()(error))?;
    std::fs::rename(&draft, path).map_err(OpenError::io(path))?;
    file::sync_folder(path).map_err(OpenError::io(path))
}

/// Writes the mark. Fails if the file has no mark.
pub(super) fn set_mark(connection: &Connection, mark: &Mark) -> rusqlite::Result<()> {
    match connection.execute(SET_MARK, [mark.text()])? {
        1 => Ok(()),
        _ => Err(rusqlite::Error::QueryReturnedNoRows),
    }
}

/// Refuses a file that is not a store of this version.
pub(super) fn require_store(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let number = |pragma: &str| -> Result<u32, OpenError> {
        connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(OpenError::sqlite(path))
    };
    file::require_application(path, number("application_id")?)?;
    match number("user_version")? {
        VERSION => Ok(()),
        found if found > VERSION => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
        _ => Err(OpenError::corrupt(path, "it has no schema version")),
    }
}

fn fill(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("schema/v1.sql"))?;
    let mark = Mark::new(&transaction)?;
    transaction.execute("INSERT INTO meta VALUES ('mark', ?1)", [mark.text()])?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_in_its_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        create(&path, &SqliteOptions::default()).unwrap();
        let connection = connect::reading(&path).unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'meta'";
        let page: u32 = connection.query_row(sql, (), |row| row.get(0)).unwrap();
        assert_eq!(page, MARK_PAGE);
        let mark = Mark::read(&connection).unwrap();
        drop(connection);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(Mark::find(&bytes[2 * 8_192..3 * 8_192]), mark);
        assert!(mark.is_some());
    }
}
