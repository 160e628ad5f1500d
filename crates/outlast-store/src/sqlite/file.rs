//! The file before SQLite opens it: its path, its permissions, its first bytes.
//!
//! SQLite changes some files that it opens, so they are inspected first. No function that opens the
//! file may run while this process has it open in SQLite: closing a file releases every lock that
//! the process holds on it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::schema;
use crate::open_error::OpenError;
use crate::private_file;

/// What exists at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// No file.
    Nothing,
    /// A store of this version.
    Store,
}

/// Resolves all links in the path, so that a file has one lock under all its names.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let name = path.file_name().ok_or(error)?;
            Ok(fs::canonicalize(folder)?.join(name))
        }
        other => other,
    }
}

/// Reads the first bytes of a file and refuses anything but a store of this version, without
/// changing it.
pub(super) fn inspect(path: &Path) -> Result<FileState, OpenError> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileState::Nothing),
        Err(error) => return Err(OpenError::io(path)(error)),
        Ok(file) => file
            .take(HEADER_BYTES as u64)
            .read_to_end(&mut header)
            .map_err(OpenError::io(path))?,
    };
    if header.is_empty() {
        let what = "it is empty; a store is never empty, not even a new one";
        return Err(OpenError::corrupt(path, what));
    }
    if !header.starts_with(MAGIC) {
        return Err(OpenError::foreign(path, "it is not an SQLite database"));
    }
    if header.len() < HEADER_BYTES {
        return Err(OpenError::corrupt(path, "it ends within its header"));
    }
    let number = |at: usize| {
        let bytes = header[at..at + 4].try_into();
        u32::from_be_bytes(bytes.expect("four bytes of a whole header"))
    };
    let (version, application) = (number(60), number(68));
    require_application(path, application)?;
    if version == 0 {
        return Err(OpenError::corrupt(path, "it has no schema version"));
    }
    if version > schema::VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known: schema::VERSION,
        });
    }
    Ok(FileState::Store)
}

/// Refuses the file of another program, and of a build from before the first release.
pub(super) fn require_application(path: &Path, application: u32) -> Result<(), OpenError> {
    match application {
        schema::APPLICATION_ID => Ok(()),
        schema::UNRELEASED_APPLICATION_ID => Err(OpenError::Unreleased {
            path: path.to_owned(),
        }),
        other => {
            let what = format!(
                "it is the SQLite database of another program (application id {other:#010x})"
            );
            Err(OpenError::foreign(path, what))
        }
    }
}

/// Opens a file that only its owner can read, or creates it.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    private_file::open(path, |options| {
        options.read(true).write(true).create(true).truncate(false);
    })
}

/// Removes the permissions of everyone except the owner. SQLite gives its side files the same mode.
pub(super) fn restrict(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = match fs::metadata(path) {
            Ok(metadata) => metadata.permissions().mode(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// The path of a side file: `tasks.db` and `.lock` make `tasks.db.lock`.
pub(super) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The path of a file that is filled before it is renamed to `path`. Removes remains of an earlier
/// attempt.
pub(super) fn draft(path: &Path) -> io::Result<PathBuf> {
    let draft = side_file(path, ".new");
    for remains in ["", "-wal", "-shm", "-journal"] {
        match fs::remove_file(side_file(&draft, remains)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(draft)
}

/// Refuses the side files of an unreleased build.
pub(super) fn refuse_ledger(path: &Path) -> Result<(), OpenError> {
    for suffix in [".ledger-a", ".ledger-b"] {
        let ledger = side_file(path, suffix);
        if ledger.try_exists().map_err(OpenError::io(&ledger))? {
            return Err(OpenError::Unreleased { path: ledger });
        }
    }
    Ok(())
}

/// Renames a log whose file is missing, because SQLite would apply it to the new file.
pub(super) fn rename_orphaned_log(path: &Path) -> io::Result<()> {
    let log = side_file(path, "-wal");
    if log.try_exists()? {
        let mut names = (1..).map(|n| side_file(path, &format!("-wal.orphan-{n}")));
        let free = names.find(|name| !name.exists());
        fs::rename(&log, free.unwrap_or_else(|| side_file(path, "-wal.orphan")))?;
    }
    match fs::remove_file(side_file(path, "-shm")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_folder(path),
    }
}

/// Removes side files that SQLite created although nothing was written.
pub(super) fn remove_empty_log(path: &Path) {
    let log = side_file(path, "-wal");
    if fs::metadata(&log).is_ok_and(|found| found.len() == 0) {
        let _ = fs::remove_file(log);
        let _ = fs::remove_file(side_file(path, "-shm"));
    }
}

/// Syncs the folder, so that the name of a new file is durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// The first bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The length of SQLite's header.
const HEADER_BYTES: usize = 100;
