//! The arguments of `outlast adopt`.

use std::path::PathBuf;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(after_help = ADOPT_HELP)]
pub(crate) struct Adopt {
    /// The configuration file of a host, with `mcpServers` or `servers` (VS Code).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the new content of the file and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Reverse the change: start the servers without the gateway.
    #[arg(long)]
    pub(crate) undo: bool,
    /// The program that the host starts [default: the full path of this program]. In a file that
    /// you share, use `outlast`.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "undo")]
    pub(crate) program: Option<String>,
}

const ADOPT_HELP: &str = "\
The host then starts each server through `outlast stdio -- COMMAND`. Comments and formatting stay.
The previous file stays next to it as FILE.before-outlast.

  outlast adopt ~/.cursor/mcp.json --dry-run
  outlast adopt .vscode/mcp.json --program outlast
  outlast adopt .vscode/mcp.json --undo";
