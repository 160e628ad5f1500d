//! Real servers that we did not write, driven by our client: a part of `cargo xtask peers`.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::npm;
use crate::part::run as run_command;
use crate::peers::example;

pub(crate) fn run() -> Result<(), String> {
    let driver = example("drive_everything")?;
    let server = npm::installed("everything")?.join(EVERYTHING);
    println!("\nserver-everything 2026.8.31, stdio");
    let stdio = [Path::new("node"), &server, Path::new("stdio")];
    run_command(Command::new(&driver).args(stdio))?;
    let listening = Listening::start(&server)?;
    println!("\nserver-everything 2026.8.31, {}", listening.url);
    run_command(Command::new(&driver).arg(&listening.url))
}

/// The server over HTTP, as long as this lives.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(server: &Path) -> Result<Self, String> {
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        let mut command = Command::new("node");
        command
            .arg(server)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let listening = Self {
            child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        };
        let patient_until = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > patient_until {
                return Err(format!("{command:?} does not listen"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);
