//! Packages from PyPI for a peer: a virtual environment in `target/peers`, filled once.

use std::path::PathBuf;
use std::process::Command;

use crate::npm::{copy_changed, root};
use crate::part::run;

/// Returns the interpreter of the environment of `peers/NAME`, with the packages in its
/// `requirements.txt`. An `overrides.txt` next to it relaxes requirements that the registry cannot
/// meet.
pub(crate) fn interpreter(name: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/peers").join(name);
    let fresh = copy_changed(&root().join("peers").join(name), &folder)?;
    let environment = folder.join("venv");
    let interpreter = environment.join("bin/python");
    // Written last, so that an incomplete environment is filled again.
    let filled = environment.join("filled");
    if fresh || !filled.exists() {
        run(Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment))?;
        run(Command::new(&interpreter).args(INSTALLER))?;
        let mut install = Command::new(environment.join("bin/uv"));
        install
            .args(["pip", "install", "--quiet", "--python"])
            .arg(&interpreter)
            .arg("-r")
            .arg(folder.join("requirements.txt"));
        let overrides = folder.join("overrides.txt");
        if overrides.exists() {
            install.arg("--override").arg(overrides);
        }
        run(&mut install)?;
        std::fs::write(&filled, "").map_err(|error| format!("{}: {error}", filled.display()))?;
    }
    Ok(interpreter)
}

/// `uv` can override requirements, `pip` cannot.
const INSTALLER: [&str; 6] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "uv==0.13.7",
];
