//! The arguments of `outlast serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use outlast::store::StoreUrl;

use super::{Logs, address};

#[derive(Debug, Parser)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// Serve every server of this configuration file (`mcpServers`, or `servers` of VS Code).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub(crate) config: Option<PathBuf>,
    /// Serve the server at this URL.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header for requests to the URL, such as credentials: `NAME: VALUE`. Can be given several
    /// times.
    #[arg(long, value_name = "HEADER", requires = "url", conflicts_with_all = ["config", "command"])]
    pub(crate) header: Vec<String>,
    /// The name of the server [default: taken from its command or URL].
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) name: Option<String>,
    /// Settings for the server: the `outlast` object of a server in a configuration file.
    #[arg(long, value_name = "JSON", conflicts_with = "config")]
    pub(crate) settings: Option<String>,
    /// Limits of the gateway: the `outlast` object next to `mcpServers` in a configuration file.
    #[arg(long, value_name = "JSON", conflicts_with = "config")]
    pub(crate) limits: Option<String>,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8040", value_parser = address)]
    pub(crate) http: SocketAddr,
    /// A further host name under which clients may reach the gateway. Can be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose web pages may send requests, such as `https://example.org`. Can be given
    /// several times.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// The store: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `memory:`
    /// [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// The host and port under which the other nodes of a PostgreSQL store reach this one [default:
    /// the local address of the connection to the database, on a free port].
    #[arg(long, value_name = "HOST:PORT", value_parser = advertised)]
    pub(crate) advertise: Option<Advertise>,
    /// Accept every client that reaches the address. Tasks then belong to sessions.
    #[arg(long)]
    pub(crate) no_token: bool,
    /// A file with further tokens for clients: a JSON object of names and secrets.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Show what servers write to their standard error. It can contain what clients and servers
    /// send.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Do not check at the start whether the servers can be reached.
    #[arg(long)]
    pub(crate) no_probe: bool,
    #[command(flatten)]
    pub(crate) logs: Logs,
    /// Serve the server that this command starts, which speaks MCP on its standard input and
    /// output.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Where other nodes reach this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertise {
    pub(crate) address: String,
    pub(crate) port: u16,
}

fn advertised(text: &str) -> Result<Advertise, String> {
    let wrong = || format!("`{text}` is not a host and a port, such as `10.0.0.5:8041`");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    match port.parse() {
        Ok(port) if port != 0 && !host.is_empty() && !is_bare_ipv6 => Ok(Advertise {
            address: text.to_owned(),
            port,
        }),
        _ => Err(wrong()),
    }
}

const SERVE_HELP: &str = "\
The endpoint is /mcp for a single server and /mcp/NAME for each of several. There are also
/healthz, /readyz and /metrics. SIGTERM and Ctrl-C stop the gateway: no new work, 10 s for running
calls. The next start recovers the rest.

  outlast serve -- npx -y @modelcontextprotocol/server-everything stdio
  outlast serve --url https://example.org/mcp --header 'Authorization: Bearer ...'
  outlast serve --config .mcp.json";
