//! The arguments of the command line.

mod adopt;
mod call;
mod completions;
mod gateway;
mod inspect;
mod logs;
mod nodes;
mod relay;
mod serve;
mod store;
mod task_filter;
mod tasks;
mod token;

use std::net::SocketAddr;
use std::str::FromStr;

use clap::error::{ContextKind, ErrorKind};
use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

use crate::terminal::ColorChoice;

pub(crate) use adopt::Adopt;
pub(crate) use call::{Call, Doctor, InputArgs, ProtocolChoice, ServerArgs, Tools};
pub(crate) use completions::Completions;
pub(crate) use gateway::{Gateway, GatewayCommand, GatewayLogs, GatewayStatus};
pub(crate) use inspect::Inspect;
pub(crate) use logs::{Format, Logs};
pub(crate) use nodes::Nodes;
pub(crate) use relay::{Background, Stdio};
pub(crate) use serve::{Advertise, Serve};
pub(crate) use store::{Backup, Copy, Store, StoreCommand};
pub(crate) use tasks::{
    AnswerArgs, Delete, List, Prune, Rerun, TaskArgs, TaskSource, Tasks, TasksCommand, Watch,
};
pub(crate) use token::{Token, TokenAdd, TokenCommand, TokenStore};

/// MCP tasks that outlast the connection, the process and the machine.
#[derive(Debug, Parser)]
#[command(name = "outlast", version = env!("OUTLAST_VERSION"), after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Colours: auto (on a terminal; NO_COLOR and CLICOLOR_FORCE count), always or never.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run sample tools as durable tasks. Kill it and run it again: no finished result is lost.
    Demo(Demo),
    /// Start a gateway: it gives MCP servers durable tasks, for any client, over HTTP.
    Serve(Serve),
    /// Connect a host to the gateway in the background: the command for its configuration file.
    Stdio(Stdio),
    /// The gateway in the background; `outlast stdio` starts it.
    #[command(hide = true)]
    Background(Background),
    /// Put the servers in the configuration file of a host behind the gateway.
    Adopt(Adopt),
    /// Show or stop the running gateway, print its log or its token.
    Gateway(Gateway),
    /// Call a tool of any MCP server, as a task if possible.
    Call(Call),
    /// List the tools of a server, with their arguments and task support.
    Tools(Tools),
    /// List, show, watch, cancel, answer, run again and delete tasks, in a store or at a server.
    Tasks(Tasks),
    /// Copy a store to a file, even while a gateway uses it, or to a database.
    Store(Store),
    /// List the gateways and servers that share a database, with their leases and load.
    Nodes(Nodes),
    /// Create, list and revoke tokens for clients of the gateway, also while it runs.
    Token(Token),
    /// Check a server: its version, capabilities and tools in each era of the protocol, and its
    /// problems.
    Doctor(Doctor),
    /// Open a console in the browser as a client of any MCP server: its tools, requests and
    /// messages.
    Inspect(Inspect),
    /// Print a script that completes commands, servers, tools and task ids in your shell.
    Completions(Completions),
    /// Print the JSON Schema of the configuration file, for editors.
    Schema,
    /// Explain the exit codes.
    #[command(name = "exit-codes", hide = true, long_about = EXIT_CODES)]
    ExitCodes,
}

#[derive(Debug, Parser)]
pub(crate) struct Demo {
    /// The store: `sqlite:PATH` or `memory:` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Serve the sample tools over Streamable HTTP at this address, such as 127.0.0.1:8040, and run
    /// no client.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// How many times to call the sample tools.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole_number::<u32>)]
    pub(crate) rounds: u32,
    /// How long one step of a sample tool takes, in milliseconds.
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = whole_number::<u64>)]
    pub(crate) step_ms: u64,
    #[command(flatten)]
    pub(crate) logs: Logs,
}

/// Parses an address to listen on. A port alone means 127.0.0.1.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:8040, or a port".into())
}

/// Prints why the arguments are invalid, and ends the process.
pub(crate) fn refuse(mut error: clap::Error) -> ! {
    let is_call = std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == "call");
    if is_call && error.kind() == ErrorKind::UnknownArgument {
        // Clap would suggest to write it after `--`, where a command is expected.
        error.remove(ContextKind::Suggested);
        // The output may be closed. The exit code still reports the error.
        let _ = error.print();
        crate::terminal::say!("  next: write an argument of the tool as NAME=VALUE, without `--`");
        std::process::exit(error.exit_code());
    }
    error.exit()
}

fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number".to_owned())
}

/// The table of the exit codes; `exit.rs` has the same numbers.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failed for a reason that the message gives
  2  wrong usage: an option, an argument of a tool, a configuration file
  3  no such task
  4  the task has no result (yet)
  5  the store or the data directory cannot be used
  6  the server cannot be reached, or its response is invalid
  7  the tool returned an error
  8  the call was cancelled
  9  the outcome is unknown: the task expired, or the server stopped or lost it
The codes are the same for tasks in a store and at a server.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_port_alone() {
        for (text, expected) in [
            ("8040", "127.0.0.1:8040"),
            ("localhost:8040", "127.0.0.1:8040"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:1", "[::1]:1"),
        ] {
            let found = address(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
        let why = address("example").unwrap_err();
        assert!(why.contains("such as 127.0.0.1:8040"), "{why}");
    }
}
