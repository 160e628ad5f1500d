//! `cargo xtask dist`: the release archive for the machine it runs on.

use std::process::Command;

use crate::npm::{root, target};
use crate::part::run as run_command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if !args.is_empty() {
        return Err("usage: cargo xtask dist".into());
    }
    let build = ["build", "--release", "--locked", "--package", "outlast-cli"];
    run_command(Command::new(env!("CARGO")).args(build).current_dir(root()))?;
    let name = format!("outlast-{}-{}", env!("CARGO_PKG_VERSION"), machine()?);
    let dist = target().join("dist");
    let folder = dist.join(&name);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let program = target().join("release/outlast");
    std::fs::copy(program, folder.join("outlast")).map_err(failed)?;
    for file in FILES {
        std::fs::copy(root().join(file), folder.join(file)).map_err(failed)?;
    }
    let archive = format!("{name}.tar.gz");
    // The same files give the same archive.
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
    run_command(
        Command::new("tar")
            .args(same)
            .args(["-czf", &archive, &name])
            .current_dir(&dist),
    )?;
    let sum = Command::new("sha256sum")
        .arg(&archive)
        .current_dir(&dist)
        .output()
        .map_err(|error| format!("sha256sum did not start: {error}"))?;
    let listed = dist.join(format!("{archive}.sha256"));
    std::fs::write(&listed, &sum.stdout).map_err(failed)?;
    println!("{}", dist.join(archive).display());
    Ok(())
}

/// The target triple of this machine.
fn machine() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc did not start: {error}"))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc does not say what it builds for".into())
}

/// The files in the archive next to the program.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
