//! What can be typed to reach a server and to call its tools.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use outlast::client::{Era, TaskPreference};

/// Which server, and how to get there.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Reach {
    /// A file with `mcpServers` or `servers` [default: the first of .mcp.json, mcp.json, .vscode/mcp.json here].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The token for a server at a URL [default: the environment variable OUTLAST_TOKEN].
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Which generation of the protocol is spoken: v1 (tasks of 2025-11-25), v2 (tasks of 2026-07-28), plain (whichever,
    /// without tasks), auto (the newest that the server knows).
    #[arg(
        long = "as",
        value_name = "HOW",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) how: How,
    /// Show what a server that is started by a command prints.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// In place of TARGET: a command that starts the server on its standard input and output.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Which generation of the protocol is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    #[default]
    Auto,
    V1,
    V2,
    Plain,
}

impl How {
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

/// Who answers a server's questions.
#[derive(Clone, Copy, Debug, Parser)]
pub(crate) struct Answering {
    /// Answer the server's questions from standard input although it is no terminal: one line each.
    #[arg(long, conflicts_with = "no_input")]
    pub(crate) interactive: bool,
    /// Declare to the server that its questions cannot be answered.
    #[arg(long)]
    pub(crate) no_input: bool,
    /// The TTL in milliseconds of a question that the server sends as a task without a TTL.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    pub(crate) question_ttl: u64,
}

#[derive(Debug, Parser)]
#[command(after_help = CALL_HELP)]
pub(crate) struct Call {
    /// TARGET, a URL or a name in the configuration file (left out before `-- CMD`); TOOL; then its arguments.
    #[arg(value_name = "[TARGET] TOOL [NAME=VALUE]...", required = true)]
    pub(crate) words: Vec<String>,
    /// All arguments of the tool as one JSON object; `@FILE` reads it from a file.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Call as a task, or not at all. A server of 2026-07-28 decides itself, and may answer at once.
    #[arg(long, conflicts_with = "no_task")]
    pub(crate) task: bool,
    /// Do not call as a task: the same as --as plain.
    #[arg(long)]
    pub(crate) no_task: bool,
    /// How long the server keeps the task, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(crate) ttl: Option<u64>,
    /// Leave as soon as the task exists, and print its id.
    #[arg(long, conflicts_with = "no_task")]
    pub(crate) detach: bool,
    /// Print the result as the server sent it.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) answering: Answering,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Parser)]
pub(crate) struct Tools {
    /// A URL or a name in the configuration file; left out before `-- CMD`.
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Print the tools as the server describes them.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Parser)]
pub(crate) struct Doctor {
    /// A URL or a name in the configuration file; left out before `-- CMD`.
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

const CALL_HELP: &str = "\
Arguments: NAME=VALUE becomes what the tool's schema says (text, number, true or false, JSON for lists and objects);
NAME:=JSON is taken as it stands.

  outlast call http://127.0.0.1:8040/mcp countdown from=5
  outlast call --as v2 --detach http://127.0.0.1:8040/mcp research topic=tides
  outlast call --json simulate-research-query topic=tides -- mcp-server-everything stdio";
