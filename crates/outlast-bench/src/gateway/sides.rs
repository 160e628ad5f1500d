//! Who stands between a client and the upstream: nobody, a peer, or we.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

use super::Stage;
use super::pipe::Pipe;
use crate::Done;
use crate::http::dialect::Generation;
use crate::http::serve::Server;
use crate::http::target::{Cost, Deed, Target};

/// Somebody who is measured.
pub(super) enum Side {
    Pipe(Pipe),
    Http(Target),
}

impl Side {
    /// Lets every client do the deed for about `turn`.
    pub(super) fn turn(&mut self, runtime: &Runtime, deed: Deed, turn: Duration) -> Done<Cost> {
        match self {
            Self::Pipe(pipe) => pipe.turn(turn),
            Self::Http(target) => target.turn(runtime, deed, turn),
        }
    }
}

/// Where our tasks live.
#[derive(Clone, Copy)]
pub(super) enum Keeps {
    Memory,
    Sqlite,
}

/// Who may come in at our gateway.
#[derive(Clone, Copy)]
pub(super) enum Owners {
    /// Whoever has the token: all sessions are of one owner and share a connection to the upstream.
    Token,
    /// Everybody: each session is of an owner of its own, and has a connection of its own.
    Sessions,
}

impl Stage {
    /// `mcp-proxy`, as quiet as it can be.
    pub(super) fn mcp_proxy(&self) -> Done<Target> {
        let address = free_address()?;
        let mut command = Command::new(&self.mcp_proxy);
        let port = address.port().to_string();
        let (program, args) = upstream()?;
        command
            .args(["-m", "mcp_proxy", "--log-level", "ERROR", "--port", &port])
            .arg("--")
            .arg(program)
            .args(args);
        Target::at(command, address, Generation::Plain)
    }

    /// `supergateway`, as quiet as it can be, with sessions: without, it starts the upstream for every request.
    pub(super) fn supergateway(&self) -> Done<Target> {
        let address = free_address()?;
        let (program, args) = upstream()?;
        let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
        let mut command = Command::new("node");
        command
            .arg(&self.supergateway)
            .arg("--stdio")
            .arg(format!("'{}' {}", program.display(), words.join(" ")))
            .args(["--outputTransport", "streamableHttp", "--stateful"])
            .args(["--logLevel", "none", "--port", &address.port().to_string()]);
        Target::at(command, address, Generation::Plain)
    }

    /// Our gateway in front of the upstream as a process.
    pub(super) fn ours(
        &self,
        generation: Generation,
        keeps: Keeps,
        owners: Owners,
    ) -> Done<Target> {
        let (program, args) = upstream()?;
        let args: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
        let server = json!({ "command": program, "args": args });
        self.gateway(server, generation, keeps, owners)
    }

    /// Our gateway in front of the upstream at `address`.
    pub(super) fn ours_at(&self, address: SocketAddr) -> Done<Target> {
        let server = json!({ "url": format!("http://{address}/mcp") });
        self.gateway(server, Generation::Plain, Keeps::Sqlite, Owners::Token)
    }

    fn gateway(
        &self,
        mut server: serde_json::Value,
        generation: Generation,
        keeps: Keeps,
        owners: Owners,
    ) -> Done<Target> {
        // Of its calls every client that knows tasks makes one at once.
        server["outlast"] = json!({ "tools": { "nothing": { "task": "always" } } });
        let folder = tempfile::tempdir_in(self.folder.path())?.keep();
        let config = folder.join("mcp.json");
        std::fs::write(
            &config,
            json!({ "mcpServers": { "upstream": server } }).to_string(),
        )?;
        let store = match keeps {
            Keeps::Memory => "memory:".to_owned(),
            Keeps::Sqlite => format!("sqlite:{}", folder.join("tasks.db").display()),
        };
        let mut command = Command::new(&self.outlast);
        command
            .args(["serve", "--http", "127.0.0.1:0", "--store", &store])
            .arg("--config")
            .arg(&config)
            .stderr(Stdio::null())
            // The token of the local user is kept there if the store is not a file.
            .env("XDG_DATA_HOME", &folder);
        match owners {
            Owners::Sessions => {
                command.arg("--no-token");
                Target::spawn(command, generation)
            }
            Owners::Token => {
                let tokens = folder.join("tokens.json");
                std::fs::write(&tokens, json!({ "bench": TOKEN }).to_string())?;
                command.arg("--tokens").arg(tokens);
                Ok(Target::spawn(command, generation)?.with_token(TOKEN))
            }
        }
    }
}

/// The command that starts the upstream on its standard input and output.
pub(super) fn upstream() -> Done<(PathBuf, Vec<OsString>)> {
    let mut words = vec!["serve".into()];
    words.extend(Server::PipedUpstream.args().into_iter().map(Into::into));
    Ok((std::env::current_exe()?, words))
}

fn free_address() -> Done<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

/// As long as those that the gateway draws.
const TOKEN: &str = "bench_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
