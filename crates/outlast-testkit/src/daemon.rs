//! Finds the daemons that tests start.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The path of a daemon. Its folder may be missing in the `PATH` of a user.
///
/// # Panics
///
/// If it is not installed.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let mut found = folders.map(|folder| folder.join(name)).filter(|file| {
        let found = std::fs::metadata(file);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    });
    let missing = || panic!("this test needs {name}: install it (`apt-get install {package}`)");
    found.next().unwrap_or_else(missing)
}
