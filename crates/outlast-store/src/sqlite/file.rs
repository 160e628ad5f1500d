//! The file as the operating system sees it: where it is, whose it is, what its first bytes say.
//!
//! Everything here looks before SQLite does, because SQLite changes what it opens. No function may
//! run while the same process has the file open in SQLite: closing a file gives up every lock that
//! the process holds on it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::schema;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or an empty file.
    Nothing,
    /// One of our files, to be read with SQLite.
    Store,
}

/// The path itself, behind all links, so that a file has one lock however it is named.
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

/// Looks at the first bytes of a file and refuses what is not ours, without a change to it.
pub(super) fn inspect(path: &Path) -> Result<Found, OpenError> {
    let mut header = Vec::with_capacity(HEADER);
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(OpenError::io(path)(error)),
        Ok(file) => file
            .take(HEADER as u64)
            .read_to_end(&mut header)
            .map_err(OpenError::io(path))?,
    };
    let foreign = |what: String| {
        let path = path.to_owned();
        Err(OpenError::Foreign { path, what })
    };
    if header.is_empty() {
        return Ok(Found::Nothing);
    }
    if !header.starts_with(MAGIC) {
        return foreign("it is not an SQLite database".to_owned());
    }
    if header.len() < HEADER {
        return Err(OpenError::corrupt(path, "it ends within its header"));
    }
    let number = |at: usize| {
        let bytes = header[at..at + 4].try_into();
        u32::from_be_bytes(bytes.expect("four bytes of a whole header"))
    };
    let (version, application) = (number(60), number(68));
    if application != schema::APPLICATION {
        return foreign(format!(
            "it is the SQLite database of another program (application id {application:#010x})"
        ));
    }
    if version > schema::VERSION {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known: schema::VERSION,
        });
    }
    Ok(Found::Store)
}

/// Opens a file for its owner alone, and makes it if there is none.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    restrict(path)?;
    Ok(file)
}

/// Takes a file away from everybody but its owner. SQLite gives its side files the same mode.
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

/// The file that goes with a store: `tasks.db` and `.lock` make `tasks.db.lock`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The file that is kept against the end of the disk, to be given up when it comes.
pub(super) fn reserve(path: &Path) -> PathBuf {
    beside(path, ".reserve")
}

/// Waits until the name of a new file is on the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// How every SQLite file begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The length of SQLite's header.
const HEADER: usize = 100;
