//! The arguments that name a server, and those of `outlast call`, `tools` and `doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use outlast::client::{Era, TaskPreference};

use super::whole_number;
use crate::completions;

/// The server and how to connect to it.
#[derive(Clone, Debug, Parser)]
pub(crate) struct ServerArgs {
    /// The configuration file, with `mcpServers` or `servers` [default: the first of .mcp.json,
    /// mcp.json, .vscode/mcp.json in this folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The token for a server at a URL [default: the environment variable OUTLAST_TOKEN].
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The protocol to use: v1 (tasks of MCP 2025-11-25), v2 (tasks of MCP 2026-07-28), plain (no
    /// tasks), auto (the newest that the server supports).
    #[arg(
        long = "as",
        value_name = "HOW",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) how: ProtocolChoice,
    /// Show what a server that a command starts writes to its standard error.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Instead of TARGET: a command that starts the server, which speaks MCP on its standard input
    /// and output.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// The protocol to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolChoice {
    #[default]
    Auto,
    V1,
    V2,
    Plain,
}

impl ProtocolChoice {
    pub(crate) fn era(self) -> Era {
        match self {
            Self::Auto | Self::Plain => Era::Auto,
            Self::V1 => Era::Legacy,
            Self::V2 => Era::Modern,
        }
    }

    pub(crate) fn preference(self) -> TaskPreference {
        match self {
            Self::Auto => TaskPreference::Prefer,
            Self::V1 | Self::V2 => TaskPreference::Require,
            Self::Plain => TaskPreference::Forbid,
        }
    }
}

/// How input requests of the server are answered.
#[derive(Clone, Copy, Debug, Parser)]
pub(crate) struct InputArgs {
    /// Answer input requests of the server from standard input even if it is not a terminal, one
    /// line each.
    #[arg(long, conflicts_with = "no_input")]
    pub(crate) interactive: bool,
    /// Accept no input requests of the server.
    #[arg(long)]
    pub(crate) no_input: bool,
    /// The TTL of an input request that the server sends as a task without a TTL, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 60_000, value_parser = whole_number::<u64>)]
    pub(crate) input_request_ttl: u64,
}

#[derive(Debug, Parser)]
#[command(
    after_help = CALL_HELP,
    override_usage = "outlast call [OPTIONS] [TARGET] TOOL [NAME=VALUE]...\n       outlast call [OPTIONS] TOOL [NAME=VALUE]... -- CMD..."
)]
pub(crate) struct Call {
    /// TARGET is a URL or a name in the configuration file; leave it out before `-- CMD`. TOOL is
    /// followed by its arguments.
    #[arg(
        value_name = "[TARGET] TOOL [NAME=VALUE]...",
        required = true,
        add = ArgValueCompleter::new(completions::servers_and_tools)
    )]
    pub(crate) words: Vec<String>,
    /// All arguments of the tool as one JSON object; `@FILE` reads it from a file.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Fail if the tool cannot run as a task. A server of MCP 2026-07-28 decides itself and may
    /// answer without a task.
    #[arg(long, conflicts_with = "no_task")]
    pub(crate) task: bool,
    /// Do not run the call as a task; the same as --as plain.
    #[arg(long)]
    pub(crate) no_task: bool,
    /// How long the server keeps the task, in milliseconds; the server may choose another TTL.
    #[arg(long, value_name = "MS", value_parser = whole_number::<u64>)]
    pub(crate) ttl: Option<u64>,
    /// Print the id of the task as soon as it exists, and return.
    #[arg(long, conflicts_with = "no_task")]
    pub(crate) detach: bool,
    /// Print the result as JSON, as the server sent it.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct Tools {
    /// A URL or a name in the configuration file; leave it out before `-- CMD`.
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(completions::servers))]
    pub(crate) target: Option<String>,
    /// Print JSON, as the server describes its tools.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct Doctor {
    /// A URL or a name in the configuration file; leave it out before `-- CMD`.
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(completions::servers))]
    pub(crate) target: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
}

const CALL_HELP: &str = "\
Arguments: NAME=VALUE is converted to the type in the tool's schema (text, number, true or false;
JSON for lists and objects). NAME:=JSON is sent unchanged.

  outlast call http://127.0.0.1:8040/mcp countdown from=5
  outlast call --as v2 --detach http://127.0.0.1:8040/mcp research topic=tides
  outlast call --json simulate-research-query topic=tides -- mcp-server-everything stdio";
