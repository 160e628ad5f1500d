//! `cargo xtask peers`: real clients that we did not write talk to the sample server.
//!
//! Each is installed by package name into `target/peers`, once.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::{gateways, python, servers};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("cargo xtask peers takes no argument (got {arg})"));
    }
    let server = example("samples")?;
    let typescript = typescript()?.join("v1_client.mjs");
    let ext_tasks = npm::installed("ext-tasks")?.join("v2_client.mjs");
    let python = python::interpreter("python")?;
    let script = root().join("peers/python/v1_client.py");
    let fastmcp = python::interpreter("fastmcp4")?;
    let fastmcp_script = root().join("peers/fastmcp4/v2_client.py");
    let listening = Listening::start(&server)?;
    let targets = [server.as_os_str(), listening.url.as_ref()];
    for target in targets {
        println!("\nTypeScript SDK 1.32.2, {}", target.display());
        run_command(Command::new("node").arg(&typescript).arg(target))?;
        println!("\nPython SDK 1.30.0, {}", target.display());
        run_command(Command::new(&python).arg(&script).arg(target))?;
        println!("\nFastMCP 4.1.4 (V2), {}", target.display());
        run_command(Command::new(&fastmcp).arg(&fastmcp_script).arg(target))?;
    }
    println!("\next-tasks 0.2.2 (V2), {}", listening.url);
    run_command(Command::new("node").arg(&ext_tasks).arg(&listening.url))?;
    servers::run()?;
    gateways::run()
}

/// A server over HTTP, as long as this lives.
pub(crate) struct Listening {
    child: Child,
    pub(crate) url: String,
}

impl Listening {
    /// Starts `server`, an example that prints its URL.
    pub(crate) fn start(server: &Path) -> Result<Self, String> {
        let mut command = Command::new(server);
        command.args(["--http", "127.0.0.1:0"]);
        Self::from(command)
    }

    /// Runs a command that prints its URL.
    pub(crate) fn from(mut command: Command) -> Result<Self, String> {
        command.stdout(Stdio::piped());
        let mut listening = Self::spawn(command, String::new())?;
        let stdout = listening.child.stdout.take();
        BufReader::new(stdout.ok_or("the server has no stdout")?)
            .read_line(&mut listening.url)
            .map_err(|error| error.to_string())?;
        listening.url.truncate(listening.url.trim_end().len());
        match listening.url.is_empty() {
            true => Err("the server ended before it listened".into()),
            false => Ok(listening),
        }
    }

    /// Runs a command that will listen at `url`. What it says of itself is of no interest.
    pub(crate) fn at(mut command: Command, url: String) -> Result<Self, String> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self::spawn(command, url)
    }

    fn spawn(mut command: Command, url: String) -> Result<Self, String> {
        let child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { child, url })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary of an example of the library, built.
pub(crate) fn example(name: &str) -> Result<PathBuf, String> {
    let build = [
        "build",
        "--quiet",
        "--package",
        "outlast",
        "--example",
        name,
    ];
    run_command(Command::new(env!("CARGO")).args(build).current_dir(root()))?;
    Ok(npm::target().join("debug/examples").join(name))
}

/// A folder with the TypeScript peer and its packages.
fn typescript() -> Result<PathBuf, String> {
    npm::installed("typescript")
}
