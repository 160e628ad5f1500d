//! The Python wheel with the program as a script of the environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::Platform;
use super::{VERSION, file_error};
use crate::npm::root;
use crate::part::run;

/// Writes the wheel with `packaging/wheel.py`.
pub(super) fn write(program: &Path, platform: &Platform, folder: &Path) -> Result<PathBuf, String> {
    let tag = format!("py3-none-{}", platform.wheel_tag(program)?);
    let wheel = folder.join(format!("outlast-{VERSION}-{tag}.whl"));
    run(Command::new("python3")
        .arg(root().join("packaging/wheel.py"))
        .args([program, &wheel, root()])
        .args([
            VERSION,
            &tag,
            env!("CARGO_PKG_DESCRIPTION"),
            env!("CARGO_PKG_LICENSE"),
        ]))?;
    std::fs::metadata(&wheel).map_err(|error| file_error(&wheel, &error))?;
    Ok(wheel)
}
