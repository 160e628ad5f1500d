//! What `outlast` prints without a command: where to begin.

use crate::terminal;

/// Prints the first commands to try, to stderr, because stdout is for data.
pub(crate) fn print() {
    TEXT.lines().for_each(terminal::err);
}

const TEXT: &str = "\
outlast: MCP tasks that outlast the connection, the process and the machine

Begin with one of these:
  outlast demo                    run sample tools as durable tasks; kill it and run it again
  outlast serve -- CMD            put an MCP server behind a gateway, over HTTP
  outlast adopt FILE              put the servers in the configuration file of a host behind the gateway
  outlast call URL TOOL           call a tool of any MCP server, as a task if possible
  outlast doctor -- CMD           check an MCP server

  next: `outlast --help` lists all commands";
