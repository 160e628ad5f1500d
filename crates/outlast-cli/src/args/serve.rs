//! What can be typed to serve other servers.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use outlast::store::StoreUrl;

use super::{Logs, address};

#[derive(Debug, Parser)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// Serve every server of this file (`mcpServers`, or `servers` as VS Code writes it).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// Serve the server at this URL.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header for the server at the URL, such as its credentials: `NAME: VALUE`.
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub(crate) header: Vec<String>,
    /// What the server is called [default: by its command or URL].
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) name: Option<String>,
    /// What the gateway does differently, as the `outlast` object of a server in a configuration file.
    #[arg(long, value_name = "JSON", conflicts_with = "config")]
    pub(crate) settings: Option<String>,
    /// Limits of the whole gateway, as the `outlast` object of a configuration file.
    #[arg(long, value_name = "JSON", conflicts_with = "config")]
    pub(crate) limits: Option<String>,
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8040", value_parser = address)]
    pub(crate) http: SocketAddr,
    /// A name under which clients reach the address, beside those of this machine. Can be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call, such as `https://example.org`. Can be given more than once.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Where tasks live: `sqlite:PATH` or `memory:` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Accept clients without a token. Each session is then an owner of its own.
    #[arg(long)]
    pub(crate) no_token: bool,
    /// More tokens for clients: a file with a JSON object of names and secrets.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Show what servers print. It may contain what clients and servers send.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Do not start or call servers before a client needs them, to see whether they can be reached.
    #[arg(long)]
    pub(crate) no_probe: bool,
    #[command(flatten)]
    pub(crate) logs: Logs,
    /// Serve the server that this command starts on its standard input and output.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

const SERVE_HELP: &str = "\
The endpoint of a single server is /mcp, that of each of several /mcp/NAME; /healthz, /readyz and /metrics stand beside.
SIGTERM or Ctrl-C: no new work, 10 s for what runs; the rest is settled at the next start.

  outlast serve -- npx -y @modelcontextprotocol/server-everything
  outlast serve --url https://example.org/mcp --header 'Authorization: Bearer ...'
  outlast serve --config .mcp.json";
