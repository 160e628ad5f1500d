//! The archive of the program with its checksum, for a download or `cargo binstall`.

use std::path::Path;
use std::process::Command;

use super::platform::Platform;
use super::{FILES, VERSION, copy};
use crate::npm::root;
use crate::part::run;

/// Writes `outlast-VERSION-TARGET.tar.gz` and its `.sha256`.
pub(super) fn write(program: &Path, platform: &Platform, folder: &Path) -> Result<(), String> {
    let name = format!("outlast-{VERSION}-{}", platform.target);
    let content = folder.join("archive").join(&name);
    copy(program, &content.join("outlast"))?;
    for file in FILES {
        copy(&root().join(file), &content.join(file))?;
    }
    for file in [
        "packaging/outlast.service",
        "docs/configuration.schema.json",
    ] {
        let path = root().join(file);
        let named = path.file_name().ok_or("a file has a name")?;
        copy(&path, &content.join(named))?;
    }
    let archive = format!("{name}.tar.gz");
    run(Command::new("tar")
        .arg("-czf")
        .arg(folder.join(&archive))
        .arg(&name)
        .current_dir(folder.join("archive")))?;
    let sum = Command::new("sha256sum")
        .arg(&archive)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("sha256sum did not start: {error}"))?;
    if !sum.status.success() {
        return Err(format!("sha256sum ended with {}", sum.status));
    }
    let text = String::from_utf8_lossy(&sum.stdout).into_owned();
    super::write(&folder.join(format!("{archive}.sha256")), &text)
}
