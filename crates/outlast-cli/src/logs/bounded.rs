//! A log file that only its owner can read and that does not grow for ever: what is too much moves to a file beside it,
//! of which there is one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that is written at its end.
pub(crate) struct Bounded {
    file: File,
    path: PathBuf,
    size: u64,
    most: u64,
}

impl Bounded {
    /// The file at `path`, made if need be.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::holding(path, MOST)
    }

    fn holding(path: &Path, most: u64) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self {
            size: file.metadata()?.len(),
            file,
            path: path.to_owned(),
            most,
        })
    }

    /// Begins anew, after what there is was put aside.
    fn turn(&mut self) -> io::Result<()> {
        // The file stays the same: others may have it open, too, to write at its end.
        std::fs::copy(&self.path, aside(&self.path))?;
        self.file.set_len(0)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size + bytes.len() as u64 > self.most && self.size > 0 {
            self.turn()?;
        }
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file of which only its owner knows, to write at its end.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    // One that was there before may have been open to others.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Where the older part is.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// How large a file may be.
const MOST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stays_small_and_private_and_its_newest_part_is_there() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "was there\n").unwrap();
        let mut log = Bounded::holding(&path, 100).unwrap();
        for line in 0..50 {
            writeln!(log, "line {line}").unwrap();
        }
        let (new, old) = (
            std::fs::read(&path).unwrap(),
            std::fs::read(aside(&path)).unwrap(),
        );
        assert!(new.len() <= 100 && old.len() <= 100);
        assert!(new.ends_with(b"line 49\n"));
        for file in [path.clone(), aside(&path)] {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
