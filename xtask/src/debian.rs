//! Programs that a check needs and that Debian packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::part;

/// Returns the path of `program`. Installs `package` if the machine does not have the program.
pub(crate) fn program(program: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(found) = find(program) {
        return Ok(found);
    }
    let failed = |error: String| format!("{error}\n  next: apt-get install {package}");
    let mut install = apt_get();
    let install = install.args(["install", "-y", "--no-install-recommends", package]);
    if part::run(install).is_err() {
        // A new machine has no list of packages, or an old one.
        part::run(apt_get().arg("update")).map_err(failed)?;
        part::run(install).map_err(failed)?;
    }
    find(program).ok_or_else(|| format!("the package {package} has no program {program}"))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Daemons are in folders that the `PATH` of a user may lack.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(DAEMON_FOLDERS.map(PathBuf::from));
    let mut found = folders.map(|folder| folder.join(program));
    found.find(|path| Path::is_file(path))
}

const DAEMON_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
