//! `outlast completions SHELL`, and the values that the shell completes: server names, tools and
//! task ids.
//!
//! The script of a shell starts `outlast` with the variable `COMPLETE` for each completion. A
//! completion reads the configuration file of this folder and the default store. It starts no
//! server and opens no connection, so the tools are those of stored tasks. Errors complete nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use outlast::store::StoreUrl;
use outlast::task::Scope;
use outlast_engine::store::Filter;
use outlast_store::sqlite::SqliteReader;

use crate::args::{Args, Completions};
use crate::dirs;
use crate::exit::Failure;
use crate::target::Config;

/// Prints the candidates and ends the process, if a shell has started it for a completion.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(Args::command)
        .var(VARIABLE)
        .complete();
}

/// Prints the script that registers the completion.
pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let completer = shells.completer(args.shell.name()).ok_or_else(|| {
        Failure::Usage(format!(
            "there is no completion for {}\n  next: use bash, elvish, fish, powershell or zsh",
            args.shell.name()
        ))
    })?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    crate::terminal::out_text(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

/// Servers of the configuration file in this folder.
pub(crate) fn servers(current: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(config) = Config::find(None) else {
        return Vec::new();
    };
    starting_with(current, config.names().map(str::to_owned))
}

/// Servers, and tools of stored tasks.
pub(crate) fn servers_and_tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = servers(current);
    let Some(reader) = default_store() else {
        return found;
    };
    let tasks = reader
        .search(&Filter::default(), MAX_EXAMINED_TASKS)
        .unwrap_or_default();
    let tools: BTreeSet<String> = tasks
        .iter()
        .filter_map(|task| task.origin.tool.as_deref().map(str::to_owned))
        .collect();
    found.extend(starting_with(current, tools.into_iter()));
    found
}

/// Servers, and ids of stored tasks.
pub(crate) fn servers_and_tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = servers(current);
    let (Some(reader), Some(begin)) = (default_store(), current.to_str()) else {
        return found;
    };
    let ids = reader.ids(&Scope::AnyTask, &begin.to_lowercase(), MAX_TASK_IDS);
    let ids = ids.unwrap_or_default();
    found.extend(
        ids.iter()
            .map(|id| CompletionCandidate::new(id.to_string())),
    );
    found
}

fn default_store() -> Option<SqliteReader> {
    match dirs::default_store().ok()? {
        StoreUrl::Sqlite(path) => SqliteReader::open(&path).ok()?,
        _ => None,
    }
}

fn starting_with(
    current: &OsStr,
    values: impl Iterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let begin = current.to_string_lossy();
    values
        .filter(|value| value.starts_with(&*begin))
        .map(CompletionCandidate::new)
        .collect()
}

/// The program, as the shell calls it.
const NAME: &str = "outlast";

/// The variable with which the script starts the program.
const VARIABLE: &str = "COMPLETE";

/// How many of the newest tasks are examined for names of tools.
const MAX_EXAMINED_TASKS: usize = 500;

/// How many task ids are offered.
const MAX_TASK_IDS: usize = 50;
