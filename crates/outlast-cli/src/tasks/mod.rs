//! `outlast tasks`: at a server, or in a store. A store is only read, also while another process
//! uses it.

mod at_running_gateway;
mod remote;
mod stored;
mod task_output;
mod task_row;

use std::io::IsTerminal;

use outlast::task::TaskId;
use outlast::wire::Raw;

use crate::args::{AnswerArgs, TaskArgs, TaskSource, Tasks, TasksCommand, Watch};
use crate::exit::Failure;
use crate::gateway;
use crate::target::{self, NamedServer};
use crate::terminal_host::TerminalHost;

use remote::GivenResponse;

pub(crate) use task_row::{TaskRow, print_table, row};

pub(crate) async fn run(tasks: Tasks) -> Result<(), Failure> {
    match tasks.command {
        // A store lists the tasks of every owner; a gateway only those of its caller.
        TasksCommand::List(list)
            if list.target.is_none() && list.at.server_args.command.is_empty() =>
        {
            stored::list(&list)
        }
        TasksCommand::List(list) => {
            match resolve_server(&list.at, list.target.iter().cloned().collect())? {
                (Some(_), _) if list.filter.is_given() => Err(Failure::Usage(
                    "--status, --tool, --server, --since and --text search a store, not a server\n  next: leave them out, or leave out TARGET".into(),
                )),
                (Some(server), _) => remote::list(server, list.limit, list.at.json).await,
                (None, _) => stored::list(&list),
            }
        }
        // The file contains everything about a task, whether a gateway runs or not.
        TasksCommand::Get(one) if one.words.len() == 1 && one.at.server_args.command.is_empty() => {
            stored::get(&one.at, &one.words[0])
        }
        TasksCommand::Get(one) => match resolve_task(&one)? {
            (Some(server), id) => remote::get(server, &id, one.at.json).await,
            (None, id) => stored::get(&one.at, &id),
        },
        TasksCommand::Result(one) => match resolve_task(&one)? {
            (Some(server), id) => remote::result(server, &id, result_as_json(&one.at)).await,
            (None, id) => stored::result(&one.at, &id, result_as_json(&one.at)),
        },
        TasksCommand::Watch(watch) => run_watch(watch).await,
        TasksCommand::Cancel(one) => match resolve_task(&one)? {
            (Some(server), id) => remote::cancel(server, &id, one.at.json).await,
            (None, id) => Err(needs_target("cancel", &id)),
        },
        TasksCommand::Answer(answer) => run_answer(answer).await,
        TasksCommand::Rerun(rerun) => at_running_gateway::rerun(&rerun),
        TasksCommand::Delete(delete) => at_running_gateway::delete(&delete),
        TasksCommand::Prune(prune) => at_running_gateway::prune(&prune),
    }
}

async fn run_watch(watch: Watch) -> Result<(), Failure> {
    let words = watch.words;
    let by_command = !watch.at.server_args.command.is_empty();
    let (server, id) = match (&words[..], by_command) {
        ([], false) if watch.at.store.is_some() => (None, None),
        ([], false) => (gateway::at_gateway(), None),
        // A single word that does not name a server is a task in the store, or at the gateway that
        // uses the store.
        ([word], false) if is_task(&watch.at, word) => {
            let (server, id) = match watch.at.store {
                Some(_) => (None, word.clone()),
                None => at_gateway(word)?,
            };
            (server, Some(id))
        }
        _ => {
            let (server, mut rest) = resolve_server(&watch.at, words)?;
            (server, rest.pop())
        }
    };
    match (server, id) {
        (Some(server), Some(id)) => {
            let host = TerminalHost::detect(watch.input);
            remote::watch(server, &id, &host, watch.at.json).await
        }
        (Some(server), None) => remote::watch_all(server, watch.at.json).await,
        (None, id) => stored::watch(&watch.at, id.as_deref()).await,
    }
}

async fn run_answer(answer: AnswerArgs) -> Result<(), Failure> {
    let mut words = answer.words;
    let by_command = !answer.server_args.command.is_empty();
    let server = if words.len() == 1 && !by_command {
        let (gateway, id) = at_gateway(&words[0])?;
        words[0] = id;
        match gateway {
            Some(gateway) => Some(gateway),
            None => return Err(needs_target("answer", &words[0])),
        }
    } else {
        target::take(&answer.server_args, &mut words)?
    };
    let (Some(server), [id]) = (server, &words[..]) else {
        return Err(Failure::Usage(
            "no task is given\n  next: `outlast tasks list TARGET` lists the tasks".into(),
        ));
    };
    let given = match (&answer.with, answer.decline) {
        (Some(text), _) => GivenResponse::Result(
            Raw::parse(text.clone()).map_err(|error| {
                Failure::Usage(format!(
                    "--with is not JSON: {error}\n  next: write the result of the input request, such as \
                     '{{\"action\": \"accept\", \"content\": {{\"NAME\": 5}}}}'"
                ))
            })?,
        ),
        (None, true) => GivenResponse::Decline,
        (None, false) => match TerminalHost::detect(answer.input) {
            TerminalHost::Interactive(..) => GivenResponse::Ask,
            TerminalHost::Deferred | TerminalHost::Absent => {
                return Err(Failure::Usage(
                    "there is no terminal to ask on\n  next: use --with JSON, --decline, or --interactive".into(),
                ));
            }
        },
    };
    remote::answer(server, id, &given).await
}

/// Returns the server, if one is named, and the words after it.
fn resolve_server(
    at: &TaskSource,
    mut words: Vec<String>,
) -> Result<(Option<NamedServer>, Vec<String>), Failure> {
    let server = target::take(&at.server_args, &mut words)?;
    if server.is_none() && at.store.is_none() && at.owner.is_none() {
        return Ok((gateway::at_gateway(), words));
    }
    if server.is_some() && (at.store.is_some() || at.owner.is_some()) {
        return Err(Failure::Usage(
            "--store and --owner cannot be used with a server\n  next: leave them out".into(),
        ));
    }
    Ok((server, words))
}

/// Returns the server, if one is named, and the id of the task.
fn resolve_task(one: &TaskArgs) -> Result<(Option<NamedServer>, String), Failure> {
    let by_command = !one.at.server_args.command.is_empty();
    match (&one.words[..], by_command) {
        ([id], false) if one.at.store.is_some() => Ok((None, id.clone())),
        ([id], false) => at_gateway(id),
        ([_, id], false) | ([id], true) => {
            let (server, _) = resolve_server(&one.at, one.words.clone())?;
            Ok((server, id.clone()))
        }
        _ => Err(Failure::Usage(
            "no task is given\n  next: write [TARGET] ID".into(),
        )),
    }
}

/// Returns the gateway on the default store, if it runs, and the whole id of a task.
fn at_gateway(id: &str) -> Result<(Option<NamedServer>, String), Failure> {
    match gateway::at_gateway() {
        Some(gateway) => Ok((Some(gateway), stored::whole_id_at_gateway(id)?)),
        None => Ok((None, id.to_owned())),
    }
}

/// Whether a single word is the id of a task, whole or shortened, and not a server.
fn is_task(at: &TaskSource, word: &str) -> bool {
    word.parse::<TaskId>().is_ok() || target::resolve(&at.server_args, Some(word)).is_err()
}

/// Whether a result is printed as JSON. Into a file or a pipe it always is.
fn result_as_json(at: &TaskSource) -> bool {
    at.json || !std::io::stdout().is_terminal()
}

fn needs_target(what: &str, id: &str) -> Failure {
    Failure::Usage(format!(
        "only a running server can {what} a task\n  next: `outlast tasks {what} TARGET {id}`; while your gateway runs, leave out TARGET and --store"
    ))
}
