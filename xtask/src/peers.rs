//! `cargo xtask peers [PART …]`: real clients and servers that we did not write, in every role.
//!
//! Each is installed once by package name into `target/peers`. This file has the clients of the
//! sample server; the other parts are in files of their names.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::{browser, check, gateways, python, queue, record, restarts, servers};

/// Runs the checks of one part.
type PartFn = fn() -> Result<(), String>;

/// The parts with their names, in the order in which they run.
const PARTS: [(&str, PartFn); 7] = [
    ("clients", clients),
    ("inspector", inspector),
    ("servers", servers::run),
    ("gateways", gateways::run),
    ("restarts", restarts::run),
    ("queue", queue::run),
    ("browser", browser::run),
];

/// Runs the parts that `only` names, or all. `cargo xtask test` begins and ends the record of a run
/// of all; the record of some parts stays without its end, so `coverage` refuses it.
pub(crate) fn run(only: &[String]) -> Result<(), String> {
    let known = PARTS.map(|(name, _)| name);
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(format!(
            "cargo xtask peers has no part named {unknown}; the parts are: {known}"
        ));
    }
    if !only.is_empty() {
        record::begin("peers")?;
    }
    for (name, part) in PARTS {
        if only.is_empty() || only.iter().any(|wanted| wanted == name) {
            part()?;
        }
    }
    Ok(())
}

/// Clients of every kind at the sample server.
fn clients() -> Result<(), String> {
    let server = example("samples")?;
    for client in clients_of_both_transports()? {
        client.run("peers", "over stdio", server.as_os_str())?;
    }
    let listening = Listening::start(&server)?;
    clients_over_http(&listening.url, "peers", "over HTTP")
}

/// Clients of every kind at the sample server at `url`; what passes is recorded in `part`.
pub(crate) fn clients_over_http(url: &str, part: &str, way: &str) -> Result<(), String> {
    for client in clients_of_both_transports()? {
        client.run(part, way, url.as_ref())?;
    }
    let ext_tasks = PeerClient {
        name: "ext-tasks/v2_client.mjs",
        program: "node".into(),
        script: npm::installed("ext-tasks")?.join("v2_client.mjs"),
    };
    ext_tasks.run(part, way, url.as_ref())
}

/// A client of the sample server. Its last argument is a URL or a command.
struct PeerClient {
    /// Its script, which is the name of the check.
    name: &'static str,
    program: OsString,
    script: PathBuf,
}

impl PeerClient {
    fn run(&self, part: &str, way: &str, target: &OsStr) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.arg(&self.script).arg(target);
        check::run_in(part, self.name, way, &mut command)
    }
}

fn clients_of_both_transports() -> Result<[PeerClient; 3], String> {
    Ok([
        PeerClient {
            name: "typescript/v1_client.mjs",
            program: "node".into(),
            script: typescript()?.join("v1_client.mjs"),
        },
        PeerClient {
            name: "python/v1_client.py",
            program: python::interpreter("python")?.into(),
            script: root().join("peers/python/v1_client.py"),
        },
        PeerClient {
            name: "fastmcp4/v2_client.py",
            program: python::interpreter("fastmcp4")?.into(),
            script: root().join("peers/fastmcp4/v2_client.py"),
        },
    ])
}

/// The MCP Inspector and its sample server (S3-23).
fn inspector() -> Result<(), String> {
    let mut command = Command::new(example("tasks_server")?);
    command.args(["--port", "0"]);
    let listening = Listening::from(command)?;
    let folder = npm::installed("inspector")?;
    let mut command = Command::new(npm::node_22(&folder.join("node_modules"))?);
    command.arg(folder.join("tasks.mjs")).arg(&listening.url);
    check::run("inspector/tasks.mjs", "over HTTP", &mut command)
}

/// A server over HTTP, until this is dropped.
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
        if listening.url.is_empty() {
            Err("the server ended before it listened".into())
        } else {
            Ok(listening)
        }
    }

    /// Runs a command that will listen at `url`. Its output is ignored.
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
    /// Asks the process to end, so that a gateway ends its servers. server-everything on stdio does
    /// not end by itself when its gateway is killed.
    fn drop(&mut self) {
        // The process may have ended already.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let kill_at = Instant::now() + END_TIMEOUT;
        while Instant::now() < kill_at && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long a process may take to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds an example of the library and returns its path.
pub(crate) fn example(name: &str) -> Result<PathBuf, String> {
    example_of("outlast", name)
}

/// Builds an example of `package` and returns its path.
pub(crate) fn example_of(package: &str, name: &str) -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--package", package, "--example", name];
    run_command(Command::new(env!("CARGO")).args(build).current_dir(root()))?;
    Ok(npm::target().join("debug/examples").join(name))
}

/// A folder with the TypeScript peer and its packages.
fn typescript() -> Result<PathBuf, String> {
    npm::installed("typescript")
}
