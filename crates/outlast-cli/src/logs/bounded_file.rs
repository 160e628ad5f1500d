//! A log file of limited size that only its owner can read. When it is full, its content moves to
//! an older file next to it. The number of older files is limited.

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
    /// How many older files are kept.
    older: usize,
}

impl BoundedFile {
    /// Opens the file at `path`, or creates it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::with_limits(path, MAX_FILE_BYTES, 1)
    }

    /// As [`Self::open`], with at most `max_bytes` bytes in each file, and `older` older files.
    pub(crate) fn with_limits(path: &Path, max_bytes: u64, older: usize) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self {
            size: file.metadata()?.len(),
            file,
            path: path.to_owned(),
            max_bytes,
            older,
        })
    }

    /// Moves the content to the newest older file and continues with an empty file.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.older).rev() {
            match std::fs::rename(
                older_path(&self.path, number),
                older_path(&self.path, number + 1),
            ) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Truncate the same file instead of replacing it: other processes may have it open for
        // appending.
        let mut full = private_file::open(&self.path, |options| {
            options.read(true);
        })?;
        let mut older = private_file::open(&older_path(&self.path, 1), |options| {
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

/// The path of an older file. The newest has the number 1.
fn older_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The maximum size of the file.
const MAX_FILE_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_file_stays_small_and_private_and_retains_its_end() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "was there\n").unwrap();
        let mut log = BoundedFile::with_limits(&path, 100, 1).unwrap();
        for line in 0..50 {
            writeln!(log, "line {line}").unwrap();
        }
        let (new, old) = (
            std::fs::read(&path).unwrap(),
            std::fs::read(older_path(&path, 1)).unwrap(),
        );
        assert!(new.len() <= 100 && old.len() <= 100);
        assert!(new.ends_with(b"line 49\n"));
        for file in [path.clone(), older_path(&path, 1)] {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn the_oldest_file_is_dropped() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("log");
        let mut log = BoundedFile::with_limits(&path, 8, 2).unwrap();
        for line in 0..5 {
            writeln!(log, "line {line}").unwrap();
        }
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(path.clone()), "line 4\n");
        assert_eq!(read(older_path(&path, 1)), "line 3\n");
        assert_eq!(read(older_path(&path, 2)), "line 2\n");
        assert!(!older_path(&path, 3).exists());
    }

    #[test]
    fn no_part_is_written_through_a_symbolic_link() {
        let folder = tempfile::TempDir::new().unwrap();
        let [victim, path] = ["victim", "log"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, older_path(&path, 1)).unwrap();
        let mut log = BoundedFile::with_limits(&path, 10, 1).unwrap();
        writeln!(log, "a line").unwrap();
        assert!(writeln!(log, "another line").is_err());
        let other = folder.path().join("other");
        symlink(&victim, &other).unwrap();
        assert!(BoundedFile::open(&other).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
