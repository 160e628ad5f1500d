//! The arguments of `outlast inspect`.

use std::net::SocketAddr;

use clap::Parser;
use clap_complete::engine::ArgValueCompleter;

use super::{Logs, ServerArgs, address};
use crate::completions;

#[derive(Debug, Parser)]
#[command(
    after_help = HELP,
    override_usage = "outlast inspect [OPTIONS] TARGET\n       outlast inspect [OPTIONS] -- CMD..."
)]
pub(crate) struct Inspect {
    /// A URL or a name in the configuration file; leave it out before `-- CMD`.
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(completions::servers))]
    pub(crate) target: Option<String>,
    /// Serve the console at this address [default: a free port of 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = address, hide_default_value = true)]
    pub(crate) http: SocketAddr,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
    #[command(flatten)]
    pub(crate) logs: Logs,
}

const HELP: &str = "\
The printed link signs in the browser that opens it first. The console answers the requests of the
server (sampling, elicitation, roots), hosts tasks that the server creates, and shows every message.

  outlast inspect http://127.0.0.1:8040/mcp
  outlast inspect -- npx -y @modelcontextprotocol/server-everything stdio";
