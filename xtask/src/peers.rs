//! `cargo xtask peers`: real clients that we did not write talk to the sample server.
//!
//! Each is installed by package name into `target/peers`, once.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::npm::{self, copy_changed, root};
use crate::part::run as run_command;
use crate::servers;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("cargo xtask peers takes no argument (got {arg})"));
    }
    let server = example("samples")?;
    let typescript = typescript()?.join("v1_client.mjs");
    let ext_tasks = npm::installed("ext-tasks")?.join("v2_client.mjs");
    let (python, script) = (python()?, root().join("peers/python/v1_client.py"));
    let listening = Listening::start(&server)?;
    let targets = [server.as_os_str(), listening.url.as_ref()];
    for target in targets {
        println!("\nTypeScript SDK 1.32.2, {}", target.display());
        run_command(Command::new("node").arg(&typescript).arg(target))?;
        println!("\nPython SDK 1.30.0, {}", target.display());
        run_command(Command::new(&python).arg(&script).arg(target))?;
    }
    println!("\next-tasks 0.2.2 (V2), {}", listening.url);
    run_command(Command::new("node").arg(&ext_tasks).arg(&listening.url))?;
    servers::run()
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
        command
            .args(["--http", "127.0.0.1:0"])
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let mut url = String::new();
        let stdout = child.stdout.take().ok_or("the server has no stdout")?;
        BufReader::new(stdout)
            .read_line(&mut url)
            .map_err(|error| error.to_string())?;
        let url = url.trim_end().to_owned();
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
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    Ok(target.join("debug/examples").join(name))
}

/// A folder with the TypeScript peer and its packages.
pub(crate) fn typescript() -> Result<PathBuf, String> {
    npm::installed("typescript")
}

/// The interpreter of a virtual environment with the packages of the Python peer.
fn python() -> Result<PathBuf, String> {
    let folder = root().join("target/peers/python");
    let fresh = copy_changed(&root().join("peers/python"), &folder)?;
    let interpreter = folder.join("venv/bin/python");
    if fresh || !interpreter.exists() {
        run_command(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(folder.join("venv")),
        )?;
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
        ];
        run_command(
            Command::new(&interpreter)
                .args(install)
                .arg(folder.join("requirements.txt")),
        )?;
    }
    Ok(interpreter)
}
