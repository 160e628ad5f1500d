//! The tables, their version, and the mark.
//!
//! A store of an older version is migrated when it is opened. Before, it is copied, because an
//! older program refuses a newer store.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::backup::{BackupError, Existing, backup};
use super::connect;
use super::file;
use super::mark::Mark;
use super::options::SqliteOptions;
use crate::open_error::OpenError;

/// The SQLite application id of a store: `OutS`.
pub(super) const APPLICATION_ID: u32 = 0x4f75_7453;

/// The application id of builds before the first release, whose format is not supported: `OutL`.
pub(super) const UNRELEASED_APPLICATION_ID: u32 = 0x4f75_744c;

/// The schema version that this program writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// What makes each version of the version before. The first makes the tables.
const MIGRATIONS: [&str; 2] = [include_str!("schema/v1.sql"), include_str!("schema/v2.sql")];

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
        .pragma_update(None, "application_id", APPLICATION_ID)
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

/// Returns the version of a store. Refuses a file that is not a store of this version or an older
/// one.
pub(super) fn require_store(connection: &Connection, path: &Path) -> Result<u32, OpenError> {
    let number = |pragma: &str| -> Result<u32, OpenError> {
        connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(OpenError::sqlite(path))
    };
    file::require_application(path, number("application_id")?)?;
    match number("user_version")? {
        found @ 1..=VERSION => Ok(found),
        found if found > VERSION => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
        _ => Err(OpenError::corrupt(path, "it has no schema version")),
    }
}

/// Migrates the store at `path` from version `found`, completely or not at all, after a copy of it
/// was written. Every transaction writes a mark.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    found: u32,
    mark: &Mark,
) -> Result<(), OpenError> {
    let copy = file::side_file(path, &format!(".v{found}"));
    // A copy of a start that was killed before the migration is replaced.
    backup(path, &copy, Existing::Replace).map_err(|error| match error {
        BackupError::Open(error) => error,
        other => OpenError::io(&copy)(std::io::Error::other(other)),
    })?;
    let refused = || OpenError::sqlite(path);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(refused())?;
    for sql in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(sql).map_err(refused())?;
    }
    transaction
        .pragma_update(None, "user_version", VERSION)
        .map_err(refused())?;
    set_mark(&transaction, mark).map_err(refused())?;
    transaction.commit().map_err(refused())
}

fn fill(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for sql in MIGRATIONS {
        transaction.execute_batch(sql)?;
    }
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
