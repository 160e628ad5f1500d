//! Detects that files of an open store were deleted or replaced.
//!
//! Writes to a file that is deleted or replaced while it is open succeed, and are lost with the
//! process. The writer therefore compares names and files before it acknowledges a commit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outlast_engine::store::Reason;

use super::file;
use super::file_fault::FileFault;

/// The files that an open store uses.
#[derive(Debug)]
pub(super) struct OpenFiles(Vec<(PathBuf, FileId)>);

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl OpenFiles {
    /// Records the files of the store at `path`, which has been written to.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let files = SUFFIXES.map(|suffix| {
            let path = file::side_file(path, suffix);
            FileId::of(&path).map(|id| (path, id))
        });
        let files: io::Result<Vec<_>> = files.into_iter().collect();
        files.map(Self)
    }

    /// Fails if a file was deleted or replaced.
    pub(super) fn check(&self) -> Result<(), FileFault> {
        for (path, id) in &self.0 {
            let problem = match FileId::of(path) {
                Ok(found) if found == *id => continue,
                Ok(_) => "replaced",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "deleted",
                Err(error) => {
                    let what = format!("{} cannot be read: {error}", path.display());
                    return Err(FileFault::Replaced(Reason::new(what)));
                }
            };
            let path = path.display();
            let what = format!(
                "{path} was {problem} while the store was open; put it back, or stop this process and restore a backup"
            );
            return Err(FileFault::Replaced(Reason::new(what)));
        }
        Ok(())
    }
}

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Open files cannot be deleted or replaced on these systems.
    #[cfg(not(unix))]
    fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|_| Self {
            device: 0,
            inode: 0,
        })
    }
}

/// The file, its log, the index of the log, and the lock.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", ".lock"];
