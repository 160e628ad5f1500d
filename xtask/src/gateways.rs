//! Real servers and real clients on both sides of the gateway: a part of `cargo xtask peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::peers::{Listening, example};

pub(crate) fn run() -> Result<(), String> {
    let outlast = binary(Build::Debug)?;
    everything(&outlast)?;
    clients(&outlast)
}

/// server-everything behind the gateway, called in every way: its tools without tasks become tasks, and the one that is
/// only a task can be called by everyone.
fn everything(outlast: &Path) -> Result<(), String> {
    let server = npm::installed("everything")?.join(EVERYTHING);
    let mut command = gateway(outlast);
    command.args(["--", "node"]).arg(&server).arg("stdio");
    let listening = Listening::from(command)?;
    println!(
        "\nserver-everything 2026.8.31 behind the gateway, {}",
        listening.url
    );
    let calls: [(&[&str], &str); 3] = [
        (&["echo", "message=hello"], "Echo: hello"),
        (
            &["trigger-long-running-operation", "duration=2", "steps=2"],
            "Long running operation completed",
        ),
        (
            &["simulate-research-query", "topic=tides"],
            "# Research Report: tides",
        ),
    ];
    for how in ["v1", "v2", "plain"] {
        for (words, expected) in calls {
            let mut call = Command::new(outlast);
            call.args(["call", "--as", how, &listening.url]).args(words);
            let output = call.output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stdout);
            if !said.contains(expected) {
                let why = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{how}: {words:?} said {said:?} {why}"));
            }
            println!("ok      {how}: {}", words[0]);
        }
    }
    Ok(())
}

/// Clients of both generations before the gateway, with our sample server behind it.
fn clients(outlast: &Path) -> Result<(), String> {
    let samples = example("samples")?;
    let typescript = npm::installed("typescript")?.join("v1_client.mjs");
    // In the legacy era it tells its progress in numbers, as that client expects.
    let file = npm::installed("typescript")?.join("gateway.json");
    let config = serde_json::json!({ "mcpServers": { "samples": {
        "command": samples, "outlast": { "era": "legacy" },
    } } });
    std::fs::write(&file, config.to_string()).map_err(|error| error.to_string())?;
    let mut command = gateway(outlast);
    command.arg("--config").arg(&file);
    let listening = Listening::from(command)?;
    println!(
        "\nTypeScript SDK 1.32.2 through the gateway, {}",
        listening.url
    );
    run_command(Command::new("node").arg(&typescript).arg(&listening.url))
}

/// The gateway for everybody, without a memory of its own; it wants to know before what.
pub(crate) fn gateway(outlast: &Path) -> Command {
    let mut command = Command::new(outlast);
    let words = [
        "serve",
        "--no-token",
        "--store",
        "memory:",
        "--http",
        "127.0.0.1:0",
    ];
    command.args(words);
    command
}

/// How the command line is built.
#[derive(Clone, Copy)]
pub(crate) enum Build {
    Debug,
    Release,
}

/// The command line, built.
pub(crate) fn binary(build: Build) -> Result<PathBuf, String> {
    let (flag, folder) = match build {
        Build::Debug => (None, "debug"),
        Build::Release => (Some("--release"), "release"),
    };
    run_command(
        Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "outlast-cli"])
            .args(flag)
            .current_dir(root()),
    )?;
    Ok(npm::target().join(folder).join("outlast"))
}

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
