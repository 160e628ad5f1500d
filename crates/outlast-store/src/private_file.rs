//! Files next to a store: only their owner can read them, and a symbolic link in their place is not
//! followed.
//!
//! A store may be in a folder where other users can create files. A link that another user puts
//! there under the name of a side file must not decide which file is written, truncated or read,
//! and a named pipe must not block the process that opens it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a side file with the access that `configure` sets. New and existing files get mode 0600.
pub fn open(path: &Path, configure: impl FnOnce(&mut OpenOptions)) -> io::Result<File> {
    let file = open_regular(path, configure)?;
    restrict(&file)?;
    Ok(file)
}

/// Opens a side file for reading and keeps its mode: a command that only reads changes no file.
pub fn open_unchanged(path: &Path) -> io::Result<File> {
    open_regular(path, |options| {
        options.read(true);
    })
}

/// Creates a side file, or truncates an existing one.
pub fn create(path: &Path) -> io::Result<File> {
    open(path, |options| {
        options.write(true).create(true).truncate(true);
    })
}

/// Reads a side file.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = open(path, |options| {
        options.read(true);
    })?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a regular file, and nothing else that has its name.
fn open_regular(path: &Path, configure: impl FnOnce(&mut OpenOptions)) -> io::Result<File> {
    let mut options = OpenOptions::new();
    configure(&mut options);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(NO_FOLLOW_NO_WAIT);
    }
    let file = options.open(path).map_err(|error| explain(path, error))?;
    if !file.metadata()?.is_file() {
        return Err(not_a_file(path));
    }
    Ok(file)
}

/// Removes the permissions of everyone except the owner.
fn restrict(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// The operating system reports a link that is not followed as a loop, and a pipe without a reader
/// as a missing device, which does not help an operator.
fn explain(path: &Path, error: io::Error) -> io::Error {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => io::Error::new(
            error.kind(),
            format!(
                "{} is a symbolic link, which is not followed here; remove it",
                path.display()
            ),
        ),
        Ok(found) if !found.is_file() => not_a_file(path),
        _ => error,
    }
}

fn not_a_file(path: &Path) -> io::Error {
    let why = format!("{} is not a regular file; remove it", path.display());
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Opening a named pipe waits for its other end without `NONBLOCK`, which has no effect on a
/// regular file.
#[cfg(unix)]
const NO_FOLLOW_NO_WAIT: i32 = {
    use rustix::fs::OFlags;
    OFlags::NOFOLLOW
        .union(OFlags::NONBLOCK)
        .bits()
        .cast_signed()
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_symbolic_link_is_neither_written_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, link] = ["victim", "link"].map(|name| folder.path().join(name));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        let create = |options: &mut OpenOptions| {
            options.write(true).create(true).truncate(true);
        };
        let refused = open(&link, create).unwrap_err();
        assert!(refused.to_string().contains("is a symbolic link"));
        assert!(read_to_string(&link).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        // The same for a link without a target: no file is created there.
        fs::remove_file(&victim).unwrap();
        assert!(open(&link, create).is_err());
        assert!(!victim.exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_named_pipe_is_refused_and_does_not_block() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let append = |options: &mut OpenOptions| {
            options.append(true).create(true);
        };
        for opened in [open(&pipe, append), create(&pipe), open_unchanged(&pipe)] {
            let why = opened.unwrap_err().to_string();
            assert!(why.contains("is not a regular file"), "{why}");
        }
    }

    #[test]
    fn a_command_that_only_reads_keeps_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "open").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        open_unchanged(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn only_its_owner_can_read_a_side_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "open").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(read_to_string(&path).unwrap(), "open");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
