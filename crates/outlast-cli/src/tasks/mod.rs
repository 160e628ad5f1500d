//! `outlast tasks`: a look into a store, without changing anything in it, also while it is in use.

mod shape;

use outlast::engine::{Clock, Owner, Scope, SystemClock, Task};
use outlast::store::StoreUrl;
use outlast::store::sqlite::Look;
use outlast::wire::v1;

use crate::args::{List, One, Place, Tasks, TasksCommand};
use crate::exit::Failure;
use crate::place;

pub(crate) fn run(tasks: Tasks) -> Result<(), Failure> {
    match tasks.command {
        TasksCommand::List(list) => show_list(&list),
        TasksCommand::Get(one) => show_one(&one),
        TasksCommand::Result(one) => show_result(&one),
    }
}

fn show_list(list: &List) -> Result<(), Failure> {
    let now = SystemClock.now();
    let mut tasks = match look(&list.at)? {
        Some(look) => look.newest(&scope(&list.at), list.limit)?,
        None => Vec::new(),
    };
    tasks.retain(|task| !task.is_gone(now));
    match list.at.json {
        true => println!("{}", shape::list(&tasks)),
        false => shape::print_table(&tasks, now),
    }
    Ok(())
}

fn show_one(one: &One) -> Result<(), Failure> {
    let (_, task) = find(one)?;
    match one.at.json {
        true => println!("{}", shape::one(&task)),
        false => shape::print_one(&task),
    }
    Ok(())
}

fn show_result(one: &One) -> Result<(), Failure> {
    let (look, task) = find(one)?;
    let body = look.body(&scope(&one.at), one.id)?;
    let text = one.id.text();
    let status = v1::status(task.view(&text).phase).to_string();
    println!(
        "{}",
        body.ok_or(Failure::NoResult(one.id, status))?.as_str()
    );
    Ok(())
}

/// A look into the store; none if there is no file yet.
fn look(at: &Place) -> Result<Option<Look>, Failure> {
    let url = match &at.store {
        Some(url) => url.clone(),
        None => place::demo_store()?,
    };
    match url {
        StoreUrl::Sqlite(path) => Ok(Look::at(path)?),
        StoreUrl::Memory => Ok(None),
    }
}

fn find(one: &One) -> Result<(Look, Task), Failure> {
    let look = look(&one.at)?.ok_or(Failure::NoTask(one.id))?;
    let found = look.task(&scope(&one.at), one.id)?;
    let task = found.filter(|task| !task.is_gone(SystemClock.now()));
    Ok((look, task.ok_or(Failure::NoTask(one.id))?))
}

fn scope(at: &Place) -> Scope {
    match &at.owner {
        Some(owner) => Scope::Of(Owner::new(owner.as_str())),
        None => Scope::Anyone,
    }
}
