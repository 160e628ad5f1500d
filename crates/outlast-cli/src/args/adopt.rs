//! What can be typed to put the servers of a host's file behind the gateway.

use std::path::PathBuf;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(after_help = ADOPT_HELP)]
pub(crate) struct Adopt {
    /// A host's configuration file with `mcpServers`, or `servers` as VS Code writes it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print what the file would become, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Let the servers start without the gateway again.
    #[arg(long)]
    pub(crate) undo: bool,
    /// How the host starts this program [default: its full path]. In a file that you share, write `outlast`.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "undo")]
    pub(crate) program: Option<String>,
}

const ADOPT_HELP: &str = "\
`outlast stdio -- COMMAND` then starts each server that a command started before. Comments and formatting stay. The previous
file stays next to it as FILE.before-outlast.

  outlast adopt ~/.cursor/mcp.json --dry-run
  outlast adopt .vscode/mcp.json --program outlast
  outlast adopt .vscode/mcp.json --undo";
