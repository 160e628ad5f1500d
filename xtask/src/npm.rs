//! Packages from npm, by name and version, unpacked once into `target/npm`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::part::run;

/// The folder with the files of `name` at `version`.
pub(crate) fn package(name: &str, version: &str) -> Result<PathBuf, String> {
    let folder = root()
        .join("target/npm")
        .join(format!("{}-{version}", name.replace(['@', '/'], "_")));
    let unpacked = folder.join("package");
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let what = format!("{name}@{version}");
    run(Command::new("npm")
        .args(["pack", "--silent", &what])
        .current_dir(&folder))?;
    let archive = std::fs::read_dir(&folder)
        .map_err(|error| error.to_string())?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "tgz"))
        .ok_or_else(|| format!("npm packed no archive for {what}"))?;
    run(Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .current_dir(&folder))?;
    Ok(unpacked)
}

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}
