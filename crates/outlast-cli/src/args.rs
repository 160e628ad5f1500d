//! What can be typed.

use clap::{Parser, Subcommand};
use outlast::engine::TaskId;
use outlast::store::StoreUrl;

/// MCP tasks that outlast the connection, the process and the machine.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run sample tools as durable tasks. Kill it at any time and run it again: no finished result is lost.
    Demo(Demo),
    /// Look at the tasks in a store.
    Tasks(Tasks),
}

#[derive(Debug, Parser)]
pub(crate) struct Demo {
    /// Where tasks live: `sqlite:PATH` or `memory:` [default: a file in your data directory].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Serve the sample tools over Streamable HTTP instead of running them here, such as at 127.0.0.1:8040.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// How many rounds of sample tasks to run.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) rounds: u32,
    /// How long one step of a sample tool takes.
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub(crate) step_ms: u64,
}

#[derive(Debug, Parser)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Show the tasks, newest first.
    List(List),
    /// Show one task and what happened to it.
    Get(One),
    /// Print the result of a task as JSON.
    Result(One),
}

#[derive(Debug, Parser)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) at: Place,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: usize,
}

#[derive(Debug, Parser)]
pub(crate) struct One {
    /// The task.
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) at: Place,
}

#[derive(Debug, Parser)]
pub(crate) struct Place {
    /// Where the tasks live: `sqlite:PATH` [default: the file of `outlast demo`].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Only the tasks of this owner.
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 failed · 2 wrong usage · 3 no such task · 4 the task has no result (yet) · 5 the store cannot be used";
