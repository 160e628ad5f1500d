//! Commands that read tasks directly from a store. The store is opened read-only, even while a
//! server uses it.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::engine::{Clock, SystemClock};
use outlast::store::StoreUrl;
use outlast::task::{Ending, Outcome, Scope, Task, TaskId};
use outlast::wire::Raw;
use outlast_engine::store::Filter;
use outlast_store::sqlite::SqliteReader;
use outlast_wire::v1;

use super::task_output;
use super::task_row::{TaskRow, print_table, say_stopped};
use crate::args::{List, TaskSource};
use crate::call::print;
use crate::dirs;
use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::terminal::{self, say};

pub(super) fn list(list: &List) -> Result<(), Failure> {
    let opened = open(&list.at)?;
    let exists = opened.is_some();
    let (tasks, is_open) = match opened {
        Some(reader) => {
            let filter = list.filter.of(list.at.owner.clone(), SystemClock.now());
            (unexpired(&reader, &filter, list.limit)?, is_open(&reader)?)
        }
        None => (Vec::new(), false),
    };
    if list.at.json {
        let tasks: serde_json::Value = tasks
            .iter()
            .map(|task| task_output::task_json(task, is_open))
            .collect();
        terminal::out_json(&tasks.to_string());
        return Ok(());
    }
    if tasks.is_empty() && (list.filter.is_given() || list.at.owner.is_some()) {
        say!("no task in this store matches; `outlast tasks list` lists all");
        return Ok(());
    }
    if tasks.is_empty() {
        let store = dirs::store_argument(&url(&list.at)?);
        if exists {
            say!("no tasks in {store}");
        } else {
            say!("no tasks: {store} does not exist yet; `outlast demo` creates it");
        }
        return Ok(());
    }
    let shown: Vec<_> = tasks
        .iter()
        .map(|task| TaskRow::stored(task, is_open))
        .collect();
    print_table(&shown, SystemClock.now());
    Ok(())
}

pub(super) fn get(at: &TaskSource, id: &str) -> Result<(), Failure> {
    let (reader, task) = find(at, id)?;
    let is_open = is_open(&reader)?;
    if at.json {
        terminal::out_json(&task_output::task_json(&task, is_open).to_string());
    } else {
        task_output::print_task(&task, is_open);
        say_stopped(usize::from(!is_open && task.state.ending().is_none()));
    }
    Ok(())
}

pub(super) fn result(at: &TaskSource, id: &str, as_json: bool) -> Result<(), Failure> {
    let (reader, task) = find(at, id)?;
    print_result(&reader, at, &task, as_json)
}

/// Prints the outcome of a task, by the same rules as the outcome of a call.
fn print_result(
    reader: &SqliteReader,
    at: &TaskSource,
    task: &Task,
    as_json: bool,
) -> Result<(), Failure> {
    let body = reader.body(&scope(at), task.id)?;
    match outcome(task, body) {
        Some(outcome) => print::outcome(&outcome, as_json),
        None => {
            let status = v1::status(task.phase()).to_string();
            Err(Failure::NoResult(task.id.to_string(), status))
        }
    }
}

/// Returns the outcome of a task that has ended.
fn outcome(task: &Task, body: Option<Raw>) -> Option<Outcome> {
    let message = task.message.clone();
    match task.state.ending()? {
        Ending::Result => body.map(Outcome::Result),
        Ending::ToolError => body.map(|body| Outcome::ToolError(body, message)),
        Ending::Error(code) => body.map(|body| Outcome::Error(body, code, message)),
        Ending::Cancelled => Some(Outcome::Cancelled),
    }
}

/// Prints every change to one task until it ends, then its outcome; or every change to any task
/// until Ctrl-C.
pub(super) async fn watch(at: &TaskSource, id: Option<&str>) -> Result<(), Failure> {
    let mut known = BTreeMap::new();
    let mut interrupts = Interrupts::listen();
    loop {
        let (reader, tasks) = match (id, open(at)?) {
            (Some(id), _) => {
                let (reader, task) = find(at, id)?;
                (Some(reader), vec![task])
            }
            (None, Some(reader)) => {
                let all = Filter {
                    owner: at.owner.clone(),
                    ..Filter::default()
                };
                let tasks = unexpired(&reader, &all, MAX_WATCHED_TASKS)?;
                (Some(reader), tasks)
            }
            (None, None) => (None, Vec::new()),
        };
        let is_open = reader.as_ref().map(is_open).transpose()?.unwrap_or(false);
        for task in tasks.iter().rev() {
            let state = (task.revision, is_open);
            if known.insert(task.id, state) != Some(state) {
                if at.json {
                    terminal::out_json(&task_output::task_json(task, is_open).to_string());
                } else {
                    terminal::out(TaskRow::stored(task, is_open).line());
                }
            }
        }
        if let (Some(_), Some(reader), [task]) = (id, &reader, &tasks[..])
            && task.state.ending().is_some()
        {
            return print_result(reader, at, task, at.json);
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = interrupts.next() => return Ok(()),
        }
    }
}

/// The newest tasks that match and have not expired.
fn unexpired(reader: &SqliteReader, filter: &Filter, limit: usize) -> Result<Vec<Task>, Failure> {
    let now = SystemClock.now();
    let mut tasks = reader.search(filter, limit)?;
    tasks.retain(|task| !task.is_expired(now));
    Ok(tasks)
}

/// Opens the store. Returns `None` if the file does not exist yet.
fn open(at: &TaskSource) -> Result<Option<SqliteReader>, Failure> {
    match (open_url(&url(at)?)?, &at.store) {
        (None, Some(StoreUrl::Sqlite(path))) => Err(Failure::NoStore(path.clone())),
        (reader, _) => Ok(reader),
    }
}

/// The store that the user named, or the default.
fn url(at: &TaskSource) -> Result<StoreUrl, Failure> {
    at.store.clone().map_or_else(dirs::default_store, Ok)
}

fn open_url(url: &StoreUrl) -> Result<Option<SqliteReader>, Failure> {
    match url {
        StoreUrl::Sqlite(path) => Ok(SqliteReader::open(path)?),
        StoreUrl::Postgres(_) => Err(Failure::Usage(
            "this command reads files only\n  next: ask a gateway that uses the database: give its URL as the target".into(),
        )),
        StoreUrl::Memory => Err(Failure::Usage(
            "a store in memory can be read only by the process that has it\n  next: name a file with --store sqlite:PATH".into(),
        )),
    }
}

/// Whether a process has the store open.
fn is_open(reader: &SqliteReader) -> Result<bool, Failure> {
    Ok(reader.holder()?.is_some())
}

/// Finds the task `id`, which may be shortened.
fn find(at: &TaskSource, id: &str) -> Result<(SqliteReader, Task), Failure> {
    let missing = || Failure::NoTask(id.to_owned());
    let reader = open(at)?.ok_or_else(missing)?;
    let whole = match id.parse() {
        Ok(whole) => whole,
        Err(_) => by_beginning(&reader, &scope(at), id)?,
    };
    let found = reader.task(&scope(at), whole)?;
    let task = found.filter(|task| !task.is_expired(SystemClock.now()));
    Ok((reader, task.ok_or_else(missing)?))
}

/// The whole id of a task of any owner in `store`.
pub(super) fn whole_id(store: &StoreUrl, id: &str) -> Result<TaskId, Failure> {
    if let Ok(whole) = id.parse() {
        return Ok(whole);
    }
    let at = open_url(store)?.ok_or_else(|| Failure::NoTask(id.to_owned()))?;
    by_beginning(&at, &Scope::AnyTask, id)
}

/// Expands a prefix to the full id of a task in the default store of the gateway, of any owner.
/// Returns `id` unchanged if no task matches; the gateway then reports that the task does not
/// exist.
pub(super) fn whole_id_at_gateway(id: &str) -> Result<String, Failure> {
    let reader = match dirs::gateway_store()? {
        StoreUrl::Sqlite(path) => SqliteReader::open(&path)?,
        StoreUrl::Memory | StoreUrl::Postgres(_) => None,
    };
    let Some(reader) = reader.filter(|_| id.parse::<TaskId>().is_err()) else {
        return Ok(id.to_owned());
    };
    let matching = reader.ids(&Scope::AnyTask, &id.to_lowercase(), MAX_NAMED_TASKS)?;
    match &matching[..] {
        [] => Ok(id.to_owned()),
        [only] => Ok(only.to_string()),
        several => Err(Failure::ambiguous(id, several)),
    }
}

fn by_beginning(reader: &SqliteReader, scope: &Scope, id: &str) -> Result<TaskId, Failure> {
    let matching = reader.ids(scope, &id.to_lowercase(), MAX_NAMED_TASKS)?;
    match &matching[..] {
        [] => Err(Failure::NoTask(id.to_owned())),
        [only] => Ok(*only),
        several => Err(Failure::ambiguous(id, several)),
    }
}

fn scope(at: &TaskSource) -> Scope {
    match &at.owner {
        Some(owner) => Scope::OwnedBy(owner.clone()),
        None => Scope::AnyTask,
    }
}

/// How often a store is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How many of the newest tasks are watched.
const MAX_WATCHED_TASKS: usize = 200;

/// How many tasks an error names if a shortened id matches several.
const MAX_NAMED_TASKS: usize = 3;
