//! `outlast tasks`: at a server, or in a store without changing anything in it, also while it is in use.

mod shape;

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::engine::{Clock, Scope, SystemClock, Task, TaskId};
use outlast::store::StoreUrl;
use outlast::store::sqlite::SqliteReader;
use outlast::wire::{Raw, v1};

use crate::args::{AnswerOne, List, One, Place, Tasks, TasksCommand, Watch};
use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::person::Person;
use crate::place;
use crate::relay;
use crate::remote::{self, Given};
use crate::target::{self, Named};

pub(crate) async fn run(tasks: Tasks) -> Result<(), Failure> {
    match tasks.command {
        TasksCommand::List(list) => match there(&list.at, list.target.iter().cloned().collect())? {
            (Some(server), _) => remote::list(server, list.limit, list.at.json).await,
            (None, _) => show_list(&list),
        },
        TasksCommand::Get(one) => match one_there(&one)? {
            (Some(server), id) => remote::get(server, &id, one.at.json).await,
            (None, id) => show_one(&one.at, here(&id)?),
        },
        TasksCommand::Result(one) => match one_there(&one)? {
            (Some(server), id) => remote::result(server, &id).await,
            (None, id) => show_result(&one.at, here(&id)?),
        },
        TasksCommand::Watch(watch) => run_watch(watch).await,
        TasksCommand::Cancel(one) => match one_there(&one)? {
            (Some(server), id) => remote::cancel(server, &id, one.at.json).await,
            (None, id) => Err(needs_target("cancel", &id)),
        },
        TasksCommand::Answer(answer) => run_answer(answer).await,
    }
}

async fn run_watch(watch: Watch) -> Result<(), Failure> {
    let words = watch.words;
    let by_command = !watch.at.reach.command.is_empty();
    let (server, id) = match (&words[..], by_command) {
        ([], false) if watch.at.store.is_some() => (None, None),
        ([], false) => (relay::at_gateway(), None),
        // A lone word that is a task is one in the store, or at the gateway that uses it.
        ([word], false) if word.parse::<TaskId>().is_ok() => {
            let server = match watch.at.store {
                Some(_) => None,
                None => relay::at_gateway(),
            };
            (server, Some(word.clone()))
        }
        _ => {
            let (server, mut rest) = there(&watch.at, words)?;
            (server, rest.pop())
        }
    };
    match (server, id) {
        (Some(server), Some(id)) => {
            let person = Person::find(watch.answering);
            remote::watch(server, &id, &person, watch.at.json).await
        }
        (Some(server), None) => remote::watch_all(server, watch.at.json).await,
        (None, id) => watch_store(&watch.at, id.as_deref().map(here).transpose()?).await,
    }
}

async fn run_answer(answer: AnswerOne) -> Result<(), Failure> {
    let mut words = answer.words;
    let by_command = !answer.reach.command.is_empty();
    let server = match words.len() == 1 && !by_command {
        true => match relay::at_gateway() {
            Some(gateway) => Some(gateway),
            None => return Err(needs_target("answer", &words[0])),
        },
        false => target::take(&answer.reach, &mut words)?,
    };
    let (Some(server), [id]) = (server, &words[..]) else {
        return Err(Failure::Usage(
            "which task?\n  next: `outlast tasks list TARGET` shows them".into(),
        ));
    };
    let given = match (&answer.with, answer.decline) {
        (Some(text), _) => Given::Result(
            Raw::parse(text.clone())
                .map_err(|error| Failure::Usage(format!("--with is not JSON: {error}")))?,
        ),
        (None, true) => Given::Decline,
        (None, false) => match Person::find(answer.answering) {
            Person::There(..) => Given::Ask,
            Person::Away => {
                return Err(Failure::Usage(
                    "nobody is there to answer\n  next: use --with JSON, --decline, or --interactive".into(),
                ));
            }
        },
    };
    remote::answer(server, id, &given).await
}

/// The server that is meant, if one is, and the words after it.
fn there(at: &Place, mut words: Vec<String>) -> Result<(Option<Named>, Vec<String>), Failure> {
    let server = target::take(&at.reach, &mut words)?;
    if server.is_none() && at.store.is_none() && at.owner.is_none() {
        return Ok((relay::at_gateway(), words));
    }
    if server.is_some() && (at.store.is_some() || at.owner.is_some()) {
        return Err(Failure::Usage(
            "--store and --owner are for stores, not for servers\n  next: leave them out".into(),
        ));
    }
    Ok((server, words))
}

/// The server, if the task is at one, and the task.
fn one_there(one: &One) -> Result<(Option<Named>, String), Failure> {
    let by_command = !one.at.reach.command.is_empty();
    match (&one.words[..], by_command) {
        ([id], false) if one.at.store.is_some() => Ok((None, id.clone())),
        ([id], false) => Ok((relay::at_gateway(), id.clone())),
        ([_, id], false) | ([id], true) => {
            let (server, _) = there(&one.at, one.words.clone())?;
            Ok((server, id.clone()))
        }
        _ => Err(Failure::Usage(
            "which task?\n  next: write [TARGET] ID".into(),
        )),
    }
}

/// An id of a task in a store.
fn here(id: &str) -> Result<TaskId, Failure> {
    id.parse().map_err(|_| {
        Failure::Usage(format!("{id} is no task of a store\n  next: name the server before it, or see `outlast tasks list`"))
    })
}

fn needs_target(what: &str, id: &str) -> Failure {
    Failure::Usage(format!(
        "a store is only looked at; to {what} a task, its server must be asked\n  next: `outlast tasks {what} TARGET {id}`"
    ))
}

fn show_list(list: &List) -> Result<(), Failure> {
    let now = SystemClock.now();
    let tasks = newest(&list.at, list.limit)?;
    match list.at.json {
        true => println!("{}", shape::list(&tasks)),
        false => shape::print_table(&tasks, now),
    }
    Ok(())
}

fn show_one(at: &Place, id: TaskId) -> Result<(), Failure> {
    let (_, task) = find(at, id)?;
    match at.json {
        true => println!("{}", shape::one(&task)),
        false => shape::print_one(&task),
    }
    Ok(())
}

fn show_result(at: &Place, id: TaskId) -> Result<(), Failure> {
    let (look, task) = find(at, id)?;
    let body = look.body(&scope(at), id)?;
    let status = v1::status(task.phase()).to_string();
    println!("{}", body.ok_or(Failure::NoResult(id, status))?.as_str());
    Ok(())
}

/// Tells every change to one task until it ends, or to all until Ctrl-C.
async fn watch_store(at: &Place, one: Option<TaskId>) -> Result<(), Failure> {
    let mut known = BTreeMap::new();
    let mut interrupts = Interrupts::listen();
    loop {
        let tasks = match one {
            Some(id) => vec![find(at, id)?.1],
            None => newest(at, WATCHED)?,
        };
        for task in tasks.iter().rev() {
            if known.insert(task.id, task.revision) != Some(task.revision) {
                match at.json {
                    true => println!("{}", shape::one(task)),
                    false => println!("{}", shape::line(task)),
                }
            }
        }
        if one.is_some() && tasks.iter().all(|task| task.state.ending().is_some()) {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupts.next() => return Ok(()),
        }
    }
}

fn newest(at: &Place, limit: usize) -> Result<Vec<Task>, Failure> {
    let now = SystemClock.now();
    let mut tasks = match look(at)? {
        Some(look) => look.newest(&scope(at), limit)?,
        None => Vec::new(),
    };
    tasks.retain(|task| !task.is_gone(now));
    Ok(tasks)
}

/// A look into the store; none if there is no file yet.
fn look(at: &Place) -> Result<Option<SqliteReader>, Failure> {
    let url = match &at.store {
        Some(url) => url.clone(),
        None => place::usual_store()?,
    };
    match url {
        StoreUrl::Sqlite(path) => Ok(SqliteReader::open(path)?),
        StoreUrl::Memory => Ok(None),
    }
}

fn find(at: &Place, id: TaskId) -> Result<(SqliteReader, Task), Failure> {
    let look = look(at)?.ok_or(Failure::NoTask(id))?;
    let found = look.task(&scope(at), id)?;
    let task = found.filter(|task| !task.is_gone(SystemClock.now()));
    Ok((look, task.ok_or(Failure::NoTask(id))?))
}

fn scope(at: &Place) -> Scope {
    match &at.owner {
        Some(owner) => Scope::Of(owner.clone()),
        None => Scope::Anyone,
    }
}

/// How often a store is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How many of the newest tasks are watched.
const WATCHED: usize = 200;
