//! Real servers and real clients on both sides of the gateway: a part of `cargo xtask peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check;
use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::peers::{Listening, example};
use crate::python;
use crate::servers::everything_script;

pub(crate) fn run() -> Result<(), String> {
    let outlast = binary(Build::Debug)?;
    everything(&outlast)?;
    eliciting(&outlast)?;
    clients(&outlast)?;
    relay(&outlast)?;
    claude_code(&outlast)
}

/// Claude Code with the lines of `docs/hosts.md`, without the network: a server on this machine
/// answers in place of the model.
fn claude_code(outlast: &Path) -> Result<(), String> {
    let server = everything_script()?;
    let script = npm::installed("claude-code")?.join("host.mjs");
    let home = npm::target().join("claude-code");
    // Remove the settings and tasks of an earlier run.
    let _ = std::fs::remove_dir_all(&home);
    let mut command = Command::new("node");
    command.arg(&script).arg(outlast).arg(&home);
    command.arg("node").arg(&server).arg("stdio");
    check::run("claude-code/host.mjs", "through the gateway", &mut command)
}

/// A real host of `outlast stdio` with a real server: the gateway is killed, and the host gets the
/// result of its task.
fn relay(outlast: &Path) -> Result<(), String> {
    let server = everything_script()?;
    let script = npm::installed("typescript")?.join("v1_relay.mjs");
    let home = npm::target().join("relay");
    // Remove the tasks of an earlier run.
    let _ = std::fs::remove_dir_all(&home);
    let mut command = Command::new("node");
    command.arg(&script).arg(outlast).arg(&home);
    command.arg("node").arg(&server).arg("stdio");
    check::run(
        "typescript/v1_relay.mjs",
        "through outlast stdio",
        &mut command,
    )
}

/// A server of both eras whose tool elicits while it runs, and a legacy client that supports
/// elicitation.
fn eliciting(outlast: &Path) -> Result<(), String> {
    let server = root().join("peers/fastmcp4/tasks_server.py");
    let mut command = gateway(outlast);
    command.arg("--").arg(python::interpreter("fastmcp4")?);
    command.arg(&server).arg("stdio");
    let listening = Listening::from(command)?;
    let client = root().join("peers/python/elicit_client.py");
    let mut command = Command::new(python::interpreter("python")?);
    command.arg(&client).arg(&listening.url);
    check::run(
        "python/elicit_client.py",
        "through the gateway",
        &mut command,
    )
}

/// server-everything behind the gateway, called by every kind of client: its tools without tasks
/// become tasks, and every client can call the one that requires a task.
fn everything(outlast: &Path) -> Result<(), String> {
    let server = everything_script()?;
    let mut command = gateway(outlast);
    command.args(["--", "node"]).arg(&server).arg("stdio");
    let listening = Listening::from(command)?;
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
            let printed = String::from_utf8_lossy(&output.stdout);
            if !printed.contains(expected) {
                let why = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{how}: {words:?} printed {printed:?} {why}"));
            }
            println!("ok      {how}: {}", words[0]);
        }
    }
    check::passed("server-everything", "behind the gateway")
}

/// Clients of both generations with the gateway and our sample server.
fn clients(outlast: &Path) -> Result<(), String> {
    let samples = example("samples")?;
    let typescript = npm::installed("typescript")?.join("v1_client.mjs");
    let mut command = gateway(outlast);
    command.arg("--").arg(&samples);
    let listening = Listening::from(command)?;
    let mut command = Command::new("node");
    command.arg(&typescript).arg(&listening.url);
    check::run(
        "typescript/v1_client.mjs",
        "through the gateway",
        &mut command,
    )
}

/// A gateway without tokens and with a store in memory. The caller adds the upstream.
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

/// The profile of the build.
#[derive(Clone, Copy)]
pub(crate) enum Build {
    Debug,
    Release,
}

/// Builds the command line and returns its path.
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
