//! Copies a store, also while a server uses it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::file;
use super::lock::Lock;
use super::mark::{Mark, MarkState};
use super::{connect, damage, schema};
use crate::open_error::OpenError;

/// What to do if the destination exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse the backup.
    Keep,
    /// Replace the file.
    Replace,
}

/// Why no backup was made. No new file exists, and an existing one is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no store.
    #[error("there is no store at {}", .0.display())]
    NoStore(PathBuf),
    /// The destination exists.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    /// The file that would be replaced has a log with changes that are not in the file.
    #[error(
        "{} was not closed: {} contains changes that a backup would lose; start a server on it once, or move both away",
        .0.display(), .1.display()
    )]
    HasLog(PathBuf, PathBuf),
}

/// Copies the store at `source` to a new file, which contains every task that was acknowledged
/// before the call. Other processes may read and write the store during the copy. The copy is
/// verified before it gets its name, and only its owner can read it.
pub fn backup(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    existing: Existing,
) -> Result<(), BackupError> {
    let (source, destination) = (source.as_ref(), destination.as_ref());
    if !source.try_exists().map_err(OpenError::io(source))? {
        return Err(BackupError::NoStore(source.to_owned()));
    }
    let destination = file::resolve(destination).map_err(OpenError::io(destination))?;
    let mut replaced = lock_replaced(&destination, existing)?;
    let from = connect::reading(source).map_err(OpenError::sqlite(source))?;
    schema::require_store(&from, source)?;
    let draft = file::draft(&destination).map_err(OpenError::io(&destination))?;
    let copied = copy(&from, source, &draft).and_then(|()| {
        refuse_existing(&destination, existing)?;
        remove_side_files(replaced.as_mut(), &destination)?;
        fs::rename(&draft, &destination).map_err(OpenError::io(&destination))?;
        Ok(file::sync_folder(&destination).map_err(OpenError::io(&destination))?)
    });
    if copied.is_err() {
        let _ = file::draft(&destination);
    }
    copied
}

fn refuse_existing(destination: &Path, existing: Existing) -> Result<(), BackupError> {
    if existing == Existing::Keep && file_exists(destination)? {
        return Err(BackupError::Exists(destination.to_owned()));
    }
    Ok(())
}

/// Takes the lock of the store that the backup replaces, if there is one. Its log must be empty,
/// because otherwise it may belong to a store that is still needed.
fn lock_replaced(destination: &Path, existing: Existing) -> Result<Option<Lock>, BackupError> {
    refuse_existing(destination, existing)?;
    let log = file::side_file(destination, "-wal");
    let has_log = file_exists(&log)?;
    if !has_log && !file_exists(destination)? {
        return Ok(None);
    }
    let lock = Lock::take(destination)?;
    if has_log && fs::metadata(&log).map_err(OpenError::io(&log))?.len() > 0 {
        return Err(BackupError::HasLog(destination.to_owned(), log));
    }
    Ok(Some(lock))
}

/// Removes the side files of a replaced store, which would be mistaken for parts of the backup.
fn remove_side_files(replaced: Option<&mut Lock>, destination: &Path) -> Result<(), BackupError> {
    let Some(lock) = replaced else {
        return Ok(());
    };
    lock.clear_commits();
    for suffix in ["-wal", "-shm"] {
        let path = file::side_file(destination, suffix);
        if file_exists(&path)? {
            fs::remove_file(&path).map_err(OpenError::io(&path))?;
        }
    }
    Ok(())
}

fn file_exists(path: &Path) -> Result<bool, BackupError> {
    Ok(path.try_exists().map_err(OpenError::io(path))?)
}

fn copy(from: &Connection, source: &Path, draft: &Path) -> Result<(), BackupError> {
    drop(file::open_private(draft).map_err(OpenError::io(draft))?);
    let refused = || OpenError::sqlite(draft);
    let mut to = connect::writing_copy(draft).map_err(refused())?;
    // All pages in one step: one read transaction of the store, which does not block its writer.
    let step = Backup::new(from, &mut to).and_then(|backup| backup.step(-1));
    match step.map_err(OpenError::sqlite(source))? {
        StepResult::Done => {}
        _ => {
            let busy = io::Error::other("another program has it locked; try again");
            return Err(OpenError::io(source)(busy).into());
        }
    }
    if let Some(what) = damage::quick_check(&to).map_err(refused())? {
        return Err(OpenError::corrupt(source, what).into());
    }
    let mark = Mark::read(&to).map_err(refused())?;
    let mark = mark.ok_or_else(|| OpenError::corrupt(source, "its mark is missing"))?;
    // The copy gets its own id, because the log of the original must never be applied to it.
    let copy = Mark {
        store: Mark::new(&to).map_err(refused())?.store,
        state: MarkState::Closed,
        ..mark
    };
    schema::set_mark(&to, &copy).map_err(refused())?;
    to.close().map_err(|(_, error)| refused()(error))?;
    let copied = fs::File::open(draft).and_then(|copied| copied.sync_all());
    Ok(copied.map_err(OpenError::io(draft))?)
}
