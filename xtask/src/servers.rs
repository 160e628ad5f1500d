//! Real servers that we did not write, driven by our client: a part of `cargo xtask peers`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::npm::{self, root};
use crate::part::run as run_command;
use crate::peers::{Listening, example};
use crate::python;

/// A server made with somebody else's library; `stdio` or `http` is its last argument.
struct Peer {
    name: &'static str,
    program: OsString,
    script: OsString,
    /// What it is expected to do, in the words of the driver.
    parts: &'static str,
}

pub(crate) fn run() -> Result<(), String> {
    let driver = example("drive_tasks")?;
    for peer in peers()? {
        println!("\n{} as a server, stdio", peer.name);
        run_command(
            Command::new(&driver)
                .args([peer.parts.as_ref(), &*peer.program, &*peer.script])
                .arg("stdio"),
        )?;
        let mut command = Command::new(&peer.program);
        command.arg(&peer.script).arg("http");
        let listening = Listening::from(command)?;
        println!("\n{} as a server, {}", peer.name, listening.url);
        run_command(Command::new(&driver).arg(peer.parts).arg(&listening.url))?;
    }
    everything()
}

fn peers() -> Result<[Peer; 4], String> {
    let typescript = npm::installed("typescript")?.join("tasks_server.mjs");
    let script = |name: &str| root().join("peers").join(name).join("tasks_server.py");
    Ok([
        Peer {
            name: "TypeScript SDK 1.32.2",
            program: "node".into(),
            script: typescript.into(),
            parts: "slow,must,fail,crash,ask,sample,host,list,endless",
        },
        Peer {
            name: "Python SDK 1.30.0",
            program: python::interpreter("python")?.into(),
            script: script("python").into(),
            parts: "slow,must,fail,crash,ask,sample,host,list,endless",
        },
        // It samples only outside of tasks, makes no tasks at clients, and lists none.
        Peer {
            name: "FastMCP 3.4.11",
            program: python::interpreter("fastmcp")?.into(),
            script: script("fastmcp").into(),
            parts: "slow,must,fail,crash,ask,endless",
        },
        // V2: it asks only for forms, and there is nothing to list or to host.
        Peer {
            name: "FastMCP 4.1.4",
            program: python::interpreter("fastmcp4")?.into(),
            script: script("fastmcp4").into(),
            parts: "slow,must,fail,crash,ask,retry,endless",
        },
    ])
}

fn everything() -> Result<(), String> {
    let driver = example("drive_everything")?;
    let server = npm::installed("everything")?.join(EVERYTHING);
    println!("\nserver-everything 2026.8.31, stdio");
    let stdio = [Path::new("node"), &server, Path::new("stdio")];
    run_command(Command::new(&driver).args(stdio))?;
    let listening = everything_over_http(&server)?;
    println!("\nserver-everything 2026.8.31, {}", listening.url);
    run_command(Command::new(&driver).arg(&listening.url))
}

/// It is told its port instead of printing its URL.
fn everything_over_http(server: &Path) -> Result<Listening, String> {
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let mut command = Command::new("node");
    command
        .arg(server)
        .arg("streamableHttp")
        .env("PORT", port.to_string());
    let listening = Listening::at(command, format!("http://127.0.0.1:{port}/mcp"))?;
    let patient_until = Instant::now() + PATIENCE;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if Instant::now() > patient_until {
            return Err(format!("nobody listens at {}", listening.url));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(listening)
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);
