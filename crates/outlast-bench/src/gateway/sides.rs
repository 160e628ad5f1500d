//! The connection between a client and the upstream: direct, through a peer, or through our
//! gateway.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

use super::pipe::Pipe;
use crate::BenchResult;
use crate::environment::Environment;
use crate::http::mcp_client::Generation;
use crate::http::serve::Server;
use crate::http::target::{ClientOperation, Cost, MeasuredServer};

/// One of the compared sides.
pub(super) enum Side {
    Pipe(Pipe),
    Http(MeasuredServer),
}

/// The server behind our gateway.
pub(super) enum Upstream {
    /// A child process of the gateway. It uses little processor time.
    Child,
    /// A server that listens at this URL.
    Url(String),
}

impl Side {
    /// Runs every client for about `turn`.
    pub(super) fn measure(
        &mut self,
        runtime: &Runtime,
        operation: ClientOperation,
        turn: Duration,
    ) -> BenchResult<Cost> {
        match self {
            Self::Pipe(pipe) => pipe.measure(turn),
            Self::Http(target) => target.measure(runtime, operation, turn),
        }
    }
}

impl Environment {
    /// `mcp-proxy` with as little log output as possible.
    pub(super) fn mcp_proxy(&self) -> BenchResult<MeasuredServer> {
        let address = free_address()?;
        let mut command = Command::new(self.options.program("mcp-proxy")?);
        let port = address.port().to_string();
        let (program, args) = upstream()?;
        command
            .args(["-m", "mcp_proxy", "--log-level", "ERROR", "--port", &port])
            .arg("--")
            .arg(program)
            .args(args);
        MeasuredServer::at(command, address, Generation::Plain)
    }

    /// `supergateway` with as little log output as possible, and with sessions: without them it
    /// starts the upstream for every request.
    pub(super) fn supergateway(&self) -> BenchResult<MeasuredServer> {
        let address = free_address()?;
        let (program, args) = upstream()?;
        let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
        let mut command = Command::new("node");
        command
            .arg(self.options.program("supergateway")?)
            .arg("--stdio")
            .arg(format!("'{}' {}", program.display(), words.join(" ")))
            .args(["--outputTransport", "streamableHttp", "--stateful"])
            .args(["--logLevel", "none", "--port", &address.port().to_string()]);
        MeasuredServer::at(command, address, Generation::Plain)
    }

    /// Our gateway with the setup of `outlast serve`: a bearer token, tasks in SQLite.
    pub(super) fn ours(
        &self,
        behind: Upstream,
        generation: Generation,
    ) -> BenchResult<MeasuredServer> {
        // Every call of `nothing` by a client with task support becomes a task immediately.
        let settings = json!({ "tools": { "nothing": { "task": "always" } } });
        let server = match behind {
            Upstream::Child => {
                let (program, args) = upstream()?;
                let args: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
                json!({ "command": program, "args": args, "outlast": settings })
            }
            Upstream::Url(url) => json!({ "url": url, "outlast": settings }),
        };
        // The load comes from one owner.
        let limits = json!({
            "requestsPerSecond": u32::MAX,
            "sessionsPerOwner": 10_000,
            "tasksPerOwner": 2_000_000,
        });
        let config = json!({ "mcpServers": { "upstream": server }, "outlast": limits });
        let folder = tempfile::tempdir_in(self.folder.path())?.keep();
        let write = |name: &str, content: serde_json::Value| {
            let path = folder.join(name);
            std::fs::write(&path, content.to_string()).map(|()| path)
        };
        let mut command = Command::new(self.options.program("outlast")?);
        command
            .args(["serve", "--http", "127.0.0.1:0", "--store"])
            .arg(format!("sqlite:{}", folder.join("tasks.db").display()))
            .arg("--config")
            .arg(write("mcp.json", config)?)
            .arg("--tokens")
            .arg(write("tokens.json", json!({ "bench": TOKEN }))?)
            .stderr(Stdio::null())
            .env("XDG_DATA_HOME", &folder);
        Ok(MeasuredServer::spawn(command, generation)?.with_token(TOKEN))
    }
}

/// The command that starts the upstream on its standard input and output.
pub(super) fn upstream() -> BenchResult<(PathBuf, Vec<OsString>)> {
    let mut words = vec!["serve".into()];
    words.extend(Server::Upstream.args().into_iter().map(Into::into));
    Ok((std::env::current_exe()?, words))
}

fn free_address() -> BenchResult<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

/// As long as the tokens of the gateway.
const TOKEN: &str = "bench_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
