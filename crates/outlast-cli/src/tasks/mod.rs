//! `outlast tasks`: a look into a store, without changing anything in it.

mod shape;

use outlast::engine::store::{Position, Snapshot};
use outlast::engine::{Clock, Committed, Owner, Scope, Store, SystemClock, Task};
use outlast::wire::v1;

use crate::args::{List, One, Place, Tasks, TasksCommand};
use crate::exit::Failure;
use crate::place;

pub(crate) async fn run(tasks: Tasks) -> Result<(), Failure> {
    match tasks.command {
        TasksCommand::List(list) => show_list(list).await,
        TasksCommand::Get(one) => show_one(one).await,
        TasksCommand::Result(one) => show_result(one).await,
    }
}

async fn show_list(list: List) -> Result<(), Failure> {
    let store = open(&list.at).await?;
    let tasks = newest(&*store, &Owner::new(list.at.owner.as_str()), list.limit).await?;
    store.close().await?;
    match list.at.json {
        true => println!("{}", shape::list(&tasks)),
        false => shape::print_table(&tasks, SystemClock.now()),
    }
    Ok(())
}

async fn show_one(one: One) -> Result<(), Failure> {
    let store = open(&one.at).await?;
    let task = find(&*store, &one).await?;
    store.close().await?;
    match one.at.json {
        true => println!("{}", shape::one(&task)),
        false => shape::print_one(&task),
    }
    Ok(())
}

async fn show_result(one: One) -> Result<(), Failure> {
    let store = open(&one.at).await?;
    let task = find(&*store, &one).await?;
    let body = store.body(&scope(&one.at), one.id).await?;
    store.close().await?;
    let text = one.id.text();
    let status = v1::status(task.view(&text).phase).to_string();
    println!(
        "{}",
        body.ok_or(Failure::NoResult(one.id, status))?.as_str()
    );
    Ok(())
}

async fn open(at: &Place) -> Result<std::sync::Arc<dyn Store>, Failure> {
    let url = match &at.store {
        Some(url) => url.clone(),
        None => place::demo_store()?,
    };
    Ok(outlast::store::open_store(&url, Default::default()).await?)
}

fn scope(at: &Place) -> Scope {
    Scope::Of(Owner::new(at.owner.as_str()))
}

async fn find(store: &dyn Store, one: &One) -> Result<Committed<Task>, Failure> {
    let found = store.load(&scope(&one.at), one.id).await?;
    found
        .filter(|task| !task.is_gone(SystemClock.now()))
        .ok_or(Failure::NoTask(one.id))
}

/// Up to `limit` tasks of an owner, newest first, without those whose time is over.
async fn newest(
    store: &dyn Store,
    owner: &Owner,
    limit: usize,
) -> Result<Vec<Committed<Task>>, Failure> {
    let mut tasks = Vec::new();
    let mut after: Option<Position> = None;
    while tasks.len() < limit {
        let page = store
            .page(owner, after, 200.min(limit - tasks.len()))
            .await?;
        for id in page.tasks.iter().map(Snapshot::id) {
            let task = store.load(&Scope::Of(owner.clone()), id).await?;
            tasks.extend(task.filter(|task| !task.is_gone(SystemClock.now())));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(tasks)
}
