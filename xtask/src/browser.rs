//! The web console in a real Chromium, at a gateway with real servers: a part of `cargo xtask
//! peers`.
//!
//! The scripts are in `peers/browser`. Screenshots of each view are written to
//! `target/screenshots`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateways::{self, Build};
use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::servers::everything_script;
use crate::{check, debian, python};

pub(crate) fn run() -> Result<(), String> {
    let chromium = debian::program("chromium", "chromium")?;
    let folder = npm::installed("browser")?;
    check_types(&folder)?;
    let outlast = gateways::binary(Build::Debug)?;
    let screenshots = npm::target().join("screenshots");
    std::fs::create_dir_all(&screenshots)
        .map_err(|error| format!("{}: {error}", screenshots.display()))?;
    let variables = [
        ("CHROMIUM", chromium),
        ("OUTLAST", outlast),
        ("FILL_STORE", fill_store()?),
        ("RMCP_SERVER", rmcp_server()?),
        ("RECEIVER_PROBE", receiver_probe()?),
        ("SCREENSHOTS", screenshots),
        ("EVERYTHING", everything_script()?),
        ("PYTHON", python::interpreter("fastmcp")?),
        (
            "FASTMCP_SERVER",
            root().join("peers/fastmcp/tasks_server.py"),
        ),
    ];
    for script in SCRIPTS {
        let mut command = Command::new("node");
        command.arg(folder.join(script)).envs(variables.clone());
        check::run(
            &format!("browser/{script}"),
            "through Chromium",
            &mut command,
        )?;
    }
    Ok(())
}

/// The scripts of the console have types in comments.
fn check_types(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("node");
    command
        .arg(folder.join("node_modules/typescript/bin/tsc"))
        .args(["--noEmit", "--allowJs", "--checkJs", "--strict"])
        .args(["--target", "es2022", "--module", "esnext"])
        .args(["--moduleResolution", "bundler"])
        .args(["--lib", "es2023,dom,dom.iterable", "--skipLibCheck"]);
    let assets = root().join("crates/outlast-console/assets");
    let entries = std::fs::read_dir(&assets)
        .map_err(|error| format!("{}: {error}", assets.display()))?
        .filter_map(Result::ok);
    let scripts = entries.map(|entry| entry.path());
    command.args(scripts.filter(|path| path.extension().is_some_and(|ending| ending == "js")));
    run_command(&mut command)
}

/// Builds a server on rmcp. Its tasks are kept in memory.
fn rmcp_server() -> Result<PathBuf, String> {
    let build = [
        "build",
        "--quiet",
        "--package",
        "outlast",
        "--features",
        "rmcp",
    ];
    let example = ["--example", "rmcp_server"];
    run_command(Command::new(env!("CARGO")).args(build).args(example))?;
    Ok(npm::target().join("debug/examples/rmcp_server"))
}

/// Builds a server that creates tasks at its client.
fn receiver_probe() -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--package", "outlast"];
    let example = ["--example", "receiver_probe"];
    run_command(Command::new(env!("CARGO")).args(build).args(example))?;
    Ok(npm::target().join("debug/examples/receiver_probe"))
}

/// Builds the program that fills a store with many tasks.
fn fill_store() -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--package", "outlast-testkit", "--bin"];
    run_command(Command::new(env!("CARGO")).args(build).arg("fill_store"))?;
    Ok(npm::target().join("debug/fill_store"))
}

const SCRIPTS: [&str; 5] = [
    "console.mjs",
    "workspace.mjs",
    "indicator.mjs",
    "hosted.mjs",
    "inspect.mjs",
];
