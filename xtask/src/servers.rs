//! Real servers that we did not write, with our client: a part of `cargo xtask peers`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::npm::{self, root};
use crate::peers::{Listening, example};
use crate::{check, python};

/// A server that uses another library. Its last argument is `stdio` or `http`.
struct PeerServer {
    /// Its script, which is the name of the check.
    name: &'static str,
    program: OsString,
    script: OsString,
    /// The features to check, in the words of the driver.
    parts: &'static str,
}

pub(crate) fn run() -> Result<(), String> {
    let driver = example("drive_tasks")?;
    for peer in peers()? {
        let mut command = Command::new(&driver);
        command
            .args([peer.parts.as_ref(), &*peer.program, &*peer.script])
            .arg("stdio");
        check::run(peer.name, "over stdio", &mut command)?;
        let listening = peer.over_http()?;
        let mut command = Command::new(&driver);
        command.arg(peer.parts).arg(&listening.url);
        check::run(peer.name, "over HTTP", &mut command)?;
    }
    everything()
}

impl PeerServer {
    /// Starts it at a URL.
    fn over_http(&self) -> Result<Listening, String> {
        let mut command = Command::new(&self.program);
        command.arg(&self.script).arg("http");
        Listening::from(command)
    }
}

/// The servers of V1 tasks with the names of their checks. Each starts when it is needed.
pub(crate) fn v1_over_http()
-> Result<impl Iterator<Item = (&'static str, Result<Listening, String>)>, String> {
    let [typescript, python, fastmcp, _] = peers()?;
    let peers = [typescript, python, fastmcp].into_iter();
    Ok(peers.map(|peer| (peer.name, peer.over_http())))
}

fn peers() -> Result<[PeerServer; 4], String> {
    let typescript = npm::installed("typescript")?.join("tasks_server.mjs");
    let script = |name: &str| root().join("peers").join(name).join("tasks_server.py");
    Ok([
        PeerServer {
            name: "typescript/tasks_server.mjs",
            program: "node".into(),
            script: typescript.into(),
            parts: "slow,must,fail,crash,ask,sample,host,list,endless",
        },
        PeerServer {
            name: "python/tasks_server.py",
            program: python::interpreter("python")?.into(),
            script: script("python").into(),
            parts: "slow,must,fail,crash,ask,sample,host,list,endless",
        },
        // It samples only outside of tasks, creates no tasks at clients, and lists none.
        PeerServer {
            name: "fastmcp/tasks_server.py",
            program: python::interpreter("fastmcp")?.into(),
            script: script("fastmcp").into(),
            parts: "slow,must,fail,crash,ask,endless",
        },
        // V2: it elicits only forms, and has no lists or hosted tasks.
        PeerServer {
            name: "fastmcp4/tasks_server.py",
            program: python::interpreter("fastmcp4")?.into(),
            script: script("fastmcp4").into(),
            parts: "slow,must,fail,crash,ask,retry,endless",
        },
    ])
}

fn everything() -> Result<(), String> {
    let driver = example("drive_everything")?;
    let server = everything_script()?;
    let stdio = [Path::new("node"), &server, Path::new("stdio")];
    check::run(
        "server-everything",
        "over stdio",
        Command::new(&driver).args(stdio),
    )?;
    let listening = everything_over_http()?;
    check::run(
        "server-everything",
        "over HTTP",
        Command::new(&driver).arg(&listening.url),
    )
}

/// The script of server-everything.
pub(crate) fn everything_script() -> Result<PathBuf, String> {
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    Ok(npm::installed("everything")?.join(script))
}

/// Its port is an argument, and it does not print its URL.
pub(crate) fn everything_over_http() -> Result<Listening, String> {
    let server = everything_script()?;
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let mut command = Command::new("node");
    command
        .arg(&server)
        .arg("streamableHttp")
        .env("PORT", port.to_string());
    let listening = Listening::at(command, format!("http://127.0.0.1:{port}/mcp"))?;
    let patient_until = Instant::now() + START_TIMEOUT;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if Instant::now() > patient_until {
            return Err(format!("no server listens at {}", listening.url));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(listening)
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);
