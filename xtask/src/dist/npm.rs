//! The npm packages: `outlast` has a small script, and one optional dependency for each platform
//! has the program. No package has an install script.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::platform::Platform;
use super::{VERSION, copy, file_error, registry, write};
use crate::npm::root;
use crate::part::run;

/// Packs the package that users install. It names only the given platforms.
pub(super) fn main_package(platforms: &[Platform], folder: &Path) -> Result<PathBuf, String> {
    let content = folder.join("npm/outlast");
    copy(
        &root().join("packaging/npm/outlast.js"),
        &content.join("bin/outlast.js"),
    )?;
    copy(&root().join("README.md"), &content.join("README.md"))?;
    let programs: Map<String, Value> = platforms
        .iter()
        .map(|platform| (platform.npm_name(), json!(VERSION)))
        .collect();
    let mut package = about("outlast");
    package["bin"] = json!({ "outlast": "bin/outlast.js" });
    package["optionalDependencies"] = Value::Object(programs);
    if let Some(name) = registry::name() {
        // The MCP registry checks that the package names its entry.
        package["mcpName"] = json!(name);
    }
    pack(&content, &package, folder, "outlast")
}

/// Packs the package with the program of one platform.
pub(super) fn platform_package(
    program: &Path,
    platform: &Platform,
    folder: &Path,
) -> Result<PathBuf, String> {
    let name = platform.npm_name();
    let content = folder.join("npm").join(&name);
    copy(program, &content.join("bin/outlast"))?;
    let (os, cpu) = platform.npm;
    let mut package = about(&name);
    package["os"] = json!([os]);
    package["cpu"] = json!([cpu]);
    if os == "linux" {
        package["libc"] = json!(["glibc"]);
    }
    pack(&content, &package, folder, &name)
}

fn about(name: &str) -> Value {
    json!({
        "name": name,
        "version": VERSION,
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "license": env!("CARGO_PKG_LICENSE"),
        "files": ["bin"],
        "engines": { "node": ">=18" },
    })
}

fn pack(content: &Path, package: &Value, folder: &Path, name: &str) -> Result<PathBuf, String> {
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(license), &content.join(license))?;
    }
    let text = serde_json::to_string_pretty(package).map_err(|error| error.to_string())?;
    write(&content.join("package.json"), &(text + "\n"))?;
    run(Command::new("npm")
        .args(["pack", "--silent", "--pack-destination"])
        .arg(folder)
        .current_dir(content))?;
    let archive = folder.join(format!("{name}-{VERSION}.tgz"));
    std::fs::metadata(&archive).map_err(|error| file_error(&archive, &error))?;
    Ok(archive)
}
