//! A log file of limited size that only its owner can read. When it is full, its content moves to
//! one older file next to it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use outlast_store::private_file;

/// A file to append to.
pub(crate) struct BoundedFile {
    file: File,
    path: PathBuf,
    size: u64,
    max_bytes: u64,
}

impl BoundedFile {
    /// Opens the file at `path`, or creates it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, MAX_BYTES)
    }

    fn with_limit(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self {
            size: file.metadata()?.len(),
            file,
            path: path.to_owned(),
            max_bytes,
        })
    }

    /// Moves the content to the older file and continues with an empty file.
    fn rotate(&mut self) -> io::Result<()> {
        // Truncate the same file instead of replacing it: other processes may have it open for
        // appending.
        let mut full = private_file::open(&self.path, |options| {
            options.read(true);
        })?;
        let mut older = private_file::open(&older_path(&self.path), |options| {
            options.write(true).create(true).truncate(true);
        })?;
        io::copy(&mut full, &mut older)?;
        self.file.set_len(0)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size + bytes.len() as u64 > self.max_bytes && self.size > 0 {
            self.rotate()?;
        }
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file for appending that only its owner can read.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    private_file::open(path, |options| {
        options.create(true).append(true);
    })
}

/// The path of the older file.
fn older_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// The maximum size of the file.
const MAX_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_file_stays_small_and_private_and_its_newest_part_is_there() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "was there\n").unwrap();
        let mut log = BoundedFile::with_limit(&path, 100).unwrap();
        for line in 0..50 {
            writeln!(log, "line {line}").unwrap();
        }
        let (new, old) = (
            std::fs::read(&path).unwrap(),
            std::fs::read(older_path(&path)).unwrap(),
        );
        assert!(new.len() <= 100 && old.len() <= 100);
        assert!(new.ends_with(b"line 49\n"));
        for file in [path.clone(), older_path(&path)] {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn neither_the_file_nor_its_older_part_is_written_through_a_symbolic_link() {
        let folder = tempfile::TempDir::new().unwrap();
        let [victim, path] = ["victim", "log"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, older_path(&path)).unwrap();
        let mut log = BoundedFile::with_limit(&path, 10).unwrap();
        writeln!(log, "a line").unwrap();
        assert!(writeln!(log, "another line").is_err());
        let other = folder.path().join("other");
        symlink(&victim, &other).unwrap();
        assert!(BoundedFile::open(&other).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
