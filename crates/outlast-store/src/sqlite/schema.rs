//! The tables, their version, and the steps from each version to the next.
//!
//! A released step never changes. A new shape is a new step, and a fixture of the old file.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::connect;
use super::error::OpenError;
use super::file;
use super::options::SqliteOptions;

/// Marks a file as ours: `OutL`.
pub(super) const APPLICATION: u32 = 0x4f75_744c;

/// The version that this program writes.
pub(super) const VERSION: u32 = STEPS.len() as u32;

/// Makes the file at `path`, complete or not at all.
pub(super) fn create(path: &Path, options: &SqliteOptions) -> Result<(), OpenError> {
    let draft = file::beside(path, ".new");
    for leftover in [
        &draft,
        &file::beside(&draft, "-wal"),
        &file::beside(&draft, "-shm"),
    ] {
        match std::fs::remove_file(leftover) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::io(leftover)(error));
            }
            _ => {}
        }
    }
    drop(file::open_private(&draft).map_err(OpenError::io(&draft))?);
    let mut connection = connect::creating(&draft, options).map_err(OpenError::sqlite(&draft))?;
    connection
        .pragma_update(None, "application_id", APPLICATION)
        .map_err(OpenError::sqlite(&draft))?;
    migrate(&mut connection, &draft, STEPS)?;
    // The last connection to close moves everything into the one file that is renamed.
    connection
        .close()
        .map_err(|(_, error)| OpenError::sqlite(&draft)(error))?;
    std::fs::rename(&draft, path).map_err(OpenError::io(path))?;
    file::sync_folder(path).map_err(OpenError::io(path))
}

/// Brings the file to the present version.
pub(super) fn update(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    refuse_drafts(connection, path)?;
    migrate(connection, path, STEPS)
}

/// Refuses a file from before the first release, whose tables had another shape under the same number.
fn refuse_drafts(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'opened'";
    let tables: u32 = connection
        .query_row(tables, (), |row| row.get(0))
        .map_err(OpenError::sqlite(path))?;
    match tables {
        0 => {
            let what = "it was made before the first release; move it away, or name another file";
            Err(OpenError::corrupt(path, what))
        }
        _ => Ok(()),
    }
}

/// Refuses a file of another version: whoever only looks changes nothing.
pub(super) fn require_present(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match version(connection, path)? {
        VERSION => refuse_drafts(connection, path),
        found if found > VERSION => Err(newer(path, found, VERSION)),
        found => {
            let what = format!("it has schema {found}; open it once to bring it to {VERSION}");
            Err(OpenError::corrupt(path, what))
        }
    }
}

fn version(connection: &Connection, path: &Path) -> Result<u32, OpenError> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(OpenError::sqlite(path))
}

fn newer(path: &Path, found: u32, known: u32) -> OpenError {
    let path = path.to_owned();
    OpenError::Newer { path, found, known }
}

/// Takes the steps that the file has not taken, each in a transaction of its own.
fn migrate(connection: &mut Connection, path: &Path, steps: &[Step]) -> Result<(), OpenError> {
    let known = steps.len() as u32;
    let found = version(connection, path)?;
    if found > known {
        return Err(newer(path, found, known));
    }
    for (version, Step(sql)) in (1..).zip(steps).skip(found as usize) {
        take(connection, sql, version).map_err(OpenError::sqlite(path))?;
    }
    if found < known {
        // The first page in the file itself tells the version to whoever looks before SQLite does.
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
            .map_err(OpenError::sqlite(path))?;
    }
    Ok(())
}

fn take(connection: &mut Connection, sql: &str, version: u32) -> rusqlite::Result<()> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step.execute_batch(sql)?;
    step.pragma_update(None, "user_version", version)?;
    step.commit()
}

/// What leads from one version to the next.
struct Step(&'static str);

const STEPS: &[Step] = &[
    Step(include_str!("schema/v1.sql")),
    Step(include_str!("schema/v2.sql")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_older_version_is_brought_to_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        create(&path, &SqliteOptions::default()).unwrap();
        let mut connection = connect::writing(&path, &SqliteOptions::default()).unwrap();
        connection
            .execute(
                "UPDATE meta SET value = 77 WHERE name = 'next_position'",
                (),
            )
            .unwrap();
        let taken = || Step("not SQL: a step that was taken is never taken again");
        let later = [
            taken(),
            taken(),
            Step("CREATE TABLE added (what TEXT); INSERT INTO added VALUES ('two')"),
            Step("INSERT INTO added VALUES ('three')"),
        ];
        for _ in 0..2 {
            migrate(&mut connection, &path, &later).unwrap();
            let facts: (u32, u32, i64) = connection
                .query_row(
                    "SELECT user_version, (SELECT count(*) FROM added),
                            (SELECT value FROM meta WHERE name = 'next_position')
                     FROM pragma_user_version",
                    (),
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .unwrap();
            assert_eq!(facts, (4, 2, 77));
        }
        let refused = migrate(&mut connection, &path, STEPS)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("schema version 4"), "{refused}");
        assert!(refused.contains("up to 2"), "{refused}");
    }

    #[test]
    fn a_file_from_before_the_first_release_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        create(&path, &SqliteOptions::default()).unwrap();
        let mut connection = connect::writing(&path, &SqliteOptions::default()).unwrap();
        let older = "DROP VIEW overview; DROP VIEW tasks; DROP TABLE opened";
        connection.execute_batch(older).unwrap();
        let refused = update(&mut connection, &path).unwrap_err().to_string();
        assert!(refused.contains("before the first release"), "{refused}");
        assert!(require_present(&connection, &path).is_err());
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        create(&path, &SqliteOptions::default()).unwrap();
        let mut connection = connect::writing(&path, &SqliteOptions::default()).unwrap();
        let broken = [
            Step(""),
            Step(""),
            Step("CREATE TABLE half (what TEXT); nonsense"),
        ];
        migrate(&mut connection, &path, &broken).unwrap_err();
        let facts: (u32, u32) = connection
            .query_row(
                "SELECT user_version, (SELECT count(*) FROM sqlite_schema WHERE name = 'half')
                 FROM pragma_user_version",
                (),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!(facts, (2, 0));
    }
}
