//! The arguments of `outlast tasks`.

use clap::{Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use outlast::store::StoreUrl;
use outlast::task::Owner;
use outlast_engine::store::Status;

use super::gateway::GatewayStore;
use super::task_filter::{TaskFilter, age_ms, ended_status};
use super::{InputArgs, ServerArgs, whole_number};
use crate::completions;

#[derive(Debug, Parser)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List the tasks, newest first. Servers of MCP 2026-07-28 cannot list tasks: keep the ids.
    List(List),
    /// Show one task and its history.
    Get(TaskArgs),
    /// Print the result of a task; at a server, wait for it. Into a pipe and with --json it is
    /// JSON.
    Result(TaskArgs),
    /// Follow a task, or all tasks, to the end.
    Watch(Watch),
    /// Cancel a task at a server.
    Cancel(TaskArgs),
    /// Answer the input requests of a task at a server.
    Answer(AnswerArgs),
    /// Run the request of an ended task again, as a new task of the same owner, at the running
    /// gateway.
    Rerun(Rerun),
    /// Delete ended tasks and their results before their TTL ends, at the running gateway.
    Delete(Delete),
    /// Delete the ended tasks that exceed limits of age, number or size, at the running gateway.
    /// The limits apply to each status separately. Prints the ids.
    Prune(Prune),
}

#[derive(Debug, Parser)]
pub(crate) struct List {
    /// A URL or a name in the configuration file [default: the store].
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(completions::servers))]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) at: TaskSource,
    #[command(flatten)]
    pub(crate) filter: TaskFilter,
    /// How many tasks to list at most.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = whole_number::<usize>)]
    pub(crate) limit: usize,
}

#[derive(Debug, Parser)]
pub(crate) struct Rerun {
    /// The id of the task, whole or shortened.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) at: GatewayStore,
    /// Also if the tool does not declare that it only reads or is idempotent.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct Delete {
    /// The ids of the tasks, whole or shortened.
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) at: GatewayStore,
}

#[derive(Debug, Parser)]
#[group(id = "limits", required = true, multiple = true, args = ["older_than", "keep", "max_bytes"])]
pub(crate) struct Prune {
    /// Tasks that ended longer ago than this, such as `90s`, `30m`, `2h` or `7d`.
    #[arg(long, value_name = "AGE", value_parser = age_ms)]
    pub(crate) older_than: Option<u64>,
    /// Tasks beyond the newest N.
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>)]
    pub(crate) keep: Option<u64>,
    /// Tasks beyond the newest whose results have together at most N bytes.
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>)]
    pub(crate) max_bytes: Option<u64>,
    /// Only tasks with one of these statuses: `completed`, `failed` or `cancelled`, separated by
    /// commas [default: all three].
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = ended_status)]
    pub(crate) status: Vec<Status>,
    /// Print the ids and delete nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) at: GatewayStore,
}

#[derive(Debug, Parser)]
pub(crate) struct TaskArgs {
    /// The id of the task. If the task is at a server, TARGET (a URL or a name in the configuration
    /// file) comes first.
    #[arg(
        value_name = "[TARGET] ID",
        required = true,
        num_args = 1..=2,
        add = ArgValueCompleter::new(completions::servers_and_tasks)
    )]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) at: TaskSource,
}

#[derive(Debug, Parser)]
pub(crate) struct Watch {
    /// TARGET is a URL or a name in the configuration file; leave it out before `-- CMD` and for a
    /// store. ID is the task.
    #[arg(
        value_name = "[TARGET] [ID]",
        num_args = 0..=2,
        add = ArgValueCompleter::new(completions::servers_and_tasks)
    )]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) at: TaskSource,
}

#[derive(Debug, Parser)]
pub(crate) struct AnswerArgs {
    /// TARGET is a URL or a name in the configuration file; leave it out before `-- CMD`. ID is the
    /// task.
    #[arg(
        value_name = "[TARGET] ID",
        required = true,
        num_args = 1..=2,
        add = ArgValueCompleter::new(completions::servers_and_tasks)
    )]
    pub(crate) words: Vec<String>,
    /// The response as the JSON result of the input request, such as
    /// '{"action":"accept","content":{"name":"x"}}' [default: ask on the terminal].
    #[arg(long, value_name = "JSON")]
    pub(crate) with: Option<String>,
    /// Decline the input request.
    #[arg(long, conflicts_with = "with")]
    pub(crate) decline: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct TaskSource {
    /// Without TARGET: the store, `sqlite:PATH` [default: the gateway's store, or that of `outlast
    /// demo` if the gateway has none].
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Without TARGET: only the tasks of this owner: `local`, `principal:NAME`, `session:ID` or
    /// `address:IP`.
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Option<Owner>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server_args: ServerArgs,
}
