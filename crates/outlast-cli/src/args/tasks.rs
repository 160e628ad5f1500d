//! What can be typed about tasks.

use clap::{Parser, Subcommand};
use outlast::engine::Owner;
use outlast::store::StoreUrl;

use super::{Answering, Reach};

#[derive(Debug, Parser)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Show the tasks, newest first. Servers of 2026-07-28 list none: keep the ids.
    List(List),
    /// Show one task and what happened to it.
    Get(One),
    /// Print the result of a task as JSON. At a server: waits for it.
    Result(One),
    /// Show what happens to a task, or to all tasks, until the end.
    Watch(Watch),
    /// Cancel a task at a server.
    Cancel(One),
    /// Answer the questions of a task at a server.
    Answer(AnswerOne),
}

#[derive(Debug, Parser)]
pub(crate) struct List {
    /// A URL or a name in the configuration file [default: a store].
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) at: Place,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: usize,
}

#[derive(Debug, Parser)]
pub(crate) struct One {
    /// The task, behind a TARGET (a URL or a name in the configuration file) if it is at a server.
    #[arg(value_name = "[TARGET] ID", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) at: Place,
}

#[derive(Debug, Parser)]
pub(crate) struct Watch {
    /// TARGET (a URL or a name in the configuration file; left out before `-- CMD` and for a store), then a task.
    #[arg(value_name = "[TARGET] [ID]", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) answering: Answering,
    #[command(flatten)]
    pub(crate) at: Place,
}

#[derive(Debug, Parser)]
pub(crate) struct AnswerOne {
    /// TARGET (a URL or a name in the configuration file; left out before `-- CMD`), then the task.
    #[arg(value_name = "[TARGET] ID", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
    /// The answer as the JSON result of the request, such as '{"action":"accept","content":{"name":"x"}}'
    /// [default: ask on the terminal].
    #[arg(long, value_name = "JSON")]
    pub(crate) with: Option<String>,
    /// Decline the question.
    #[arg(long, conflicts_with = "with")]
    pub(crate) decline: bool,
    #[command(flatten)]
    pub(crate) answering: Answering,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Parser)]
pub(crate) struct Place {
    /// Without TARGET: where the tasks live, `sqlite:PATH` [default: at the background gateway if it
    /// runs, else the gateway's file, else that of `outlast demo`].
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
    pub(crate) reach: Reach,
}
