//! Files next to a store: only their owner can read them, and a symbolic link in their place is not
//! followed.
//!
//! A store may be in a folder where other users can create files. A link that another user puts
//! there under the name of a side file must not decide which file is written, truncated or read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a side file with the access that `configure` sets. New and existing files get mode 0600.
pub fn open(path: &Path, configure: impl FnOnce(&mut OpenOptions)) -> io::Result<File> {
    let mut options = OpenOptions::new();
    configure(&mut options);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(NO_FOLLOW);
    }
    let file = options.open(path).map_err(|error| explain(path, error))?;
    restrict(&file)?;
    Ok(file)
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

/// The operating system reports a link that is not followed as a loop, which does not help an
/// operator.
fn explain(path: &Path, error: io::Error) -> io::Error {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if is_link {
        io::Error::new(
            error.kind(),
            format!(
                "{} is a symbolic link, which is not followed here; remove it",
                path.display()
            ),
        )
    } else {
        error
    }
}

#[cfg(unix)]
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

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
