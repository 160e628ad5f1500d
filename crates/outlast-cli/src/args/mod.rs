//! What can be typed.

mod adopt;
mod call;
mod gateway;
mod logs;
mod relay;
mod serve;
mod store;
mod tasks;

use std::net::SocketAddr;

use clap::{Parser, Subcommand};
use outlast::store::StoreUrl;

use crate::terminal::ColorChoice;

pub(crate) use adopt::Adopt;
pub(crate) use call::{Answering, Call, Doctor, Reach, Tools};
pub(crate) use gateway::{Gateway, GatewayCommand, GatewayLogs, GatewayStatus};
pub(crate) use logs::{Format, Logs};
pub(crate) use relay::{Background, Stdio};
pub(crate) use serve::Serve;
pub(crate) use store::{Backup, Store, StoreCommand};
pub(crate) use tasks::{AnswerOne, List, One, Place, Tasks, TasksCommand, Watch};

/// MCP tasks that outlast the connection, the process and the machine.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// When output has colours: auto (on a terminal; NO_COLOR and CLICOLOR_FORCE count), always or never.
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
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run sample tools as durable tasks. Kill it at any time and run it again: no finished result is lost.
    Demo(Demo),
    /// Give any MCP server durable tasks, for any client, over HTTP.
    Serve(Serve),
    /// The same for a host's own configuration file: a relay to a gateway in the background.
    Stdio(Stdio),
    /// The gateway in the background.
    #[command(hide = true)]
    Background(Background),
    /// Put the servers of a host's configuration file behind the gateway.
    Adopt(Adopt),
    /// Show or stop the gateway on this machine, print its log or its token.
    Gateway(Gateway),
    /// Call a tool of any MCP server, as a task where that is possible.
    Call(Call),
    /// List the tools of a server: what they do, what they take, and whether they run as tasks.
    Tools(Tools),
    /// Look at tasks, in a store or at a server; watch, cancel and answer them there.
    Tasks(Tasks),
    /// Copy a store, also while a gateway uses it.
    Store(Store),
    /// Say what a server is and can do in each era of the protocol, and what is odd about it.
    Doctor(Doctor),
    /// What each exit code means: `outlast help exit-codes`.
    #[command(name = "exit-codes", hide = true, long_about = EXIT_CODES)]
    ExitCodes,
}

#[derive(Debug, Parser)]
pub(crate) struct Demo {
    /// Where tasks live: `sqlite:PATH` or `memory:` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Serve the sample tools over Streamable HTTP instead of running them here, such as at 127.0.0.1:8040.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// How many rounds of sample tasks to run.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) rounds: u32,
    /// How long one step of a sample tool takes.
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub(crate) step_ms: u64,
    #[command(flatten)]
    pub(crate) logs: Logs,
}

/// An address to listen on. A port alone is one of this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:8040, or a port".into())
}

/// One place for the table; `exit.rs` has the same numbers.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason, which the message names
  2  wrong usage: an option, an argument of a tool, a configuration file
  3  no such task
  4  the task has no result (yet)
  5  the store or the data directory cannot be used
  6  the server cannot be reached, or did not answer sensibly
  7  the tool answered with an error
  8  the call was cancelled
  9  the outcome is unknown: the task expired, the server lost it, or the server stopped during the call
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
