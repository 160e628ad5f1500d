//! `outlast tasks … TARGET`: tasks at a server.

mod answer;
mod shape;

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::back::{Client, Era, Fault, Reference};
use outlast::wire::{PeerTask, codes};

use crate::call::{End, Interrupt, follow, print};
use crate::connect::connect;
use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::left::Left;
use crate::person::Person;
use crate::target::Named;

pub(crate) use answer::{Given, answer};

pub(crate) async fn list(server: Named, limit: usize, json: bool) -> Result<(), Failure> {
    with_list(server, async |client| {
        let mut tasks = client.list_tasks().await?;
        tasks.truncate(limit);
        match json {
            true => println!("{}", shape::list(&tasks)),
            false => shape::print_table(&tasks),
        }
        Ok(())
    })
    .await
}

pub(crate) async fn get(server: Named, id: &str, json: bool) -> Result<(), Failure> {
    with(server, async |client| {
        let task = found(id, client.get_task(id).await)?;
        match json {
            true => println!("{}", shape::one(&task)),
            false => shape::print_one(&task),
        }
        Ok(())
    })
    .await
}

/// Waits for the end, and prints what came out as it stands.
pub(crate) async fn result(server: Named, id: &str) -> Result<(), Failure> {
    let person = Person::Away;
    attached(server, id, &person, true).await
}

pub(crate) async fn cancel(server: Named, id: &str, json: bool) -> Result<(), Failure> {
    with(server, async |client| {
        let task = found(id, client.cancel_task(id).await)?;
        match json {
            true => println!("{}", shape::one(&task)),
            false => println!("{}", task.status),
        }
        Ok(())
    })
    .await
}

/// Follows one task to its end.
pub(crate) async fn watch(
    server: Named,
    id: &str,
    person: &Person,
    json: bool,
) -> Result<(), Failure> {
    attached(server, id, person, json).await
}

/// Tells every change to any of our tasks until Ctrl-C.
pub(crate) async fn watch_all(server: Named, json: bool) -> Result<(), Failure> {
    with_list(server, async |client| {
        let mut known = BTreeMap::new();
        let mut interrupts = Interrupts::listen();
        loop {
            for task in client.list_tasks().await?.into_iter().rev() {
                let state = (task.status, task.message.clone());
                if known.insert(task.id.clone(), state.clone()) != Some(state) {
                    match json {
                        true => println!("{}", shape::one(&task)),
                        false => println!("{}", shape::line(&task)),
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = interrupts.next() => return Ok(()),
            }
        }
    })
    .await
}

/// Goes on with a task that somebody began.
async fn attached(server: Named, id: &str, person: &Person, json: bool) -> Result<(), Failure> {
    let (endpoint, left) = (server.target.endpoint(), Left::at(&server));
    let connected = connect(server, person).await?;
    let client = &connected.client;
    let done = async {
        found(id, client.get_task(id).await)?;
        let reference = Reference::known_by_id(endpoint, id);
        let Ok(execution) = client.resume(reference) else {
            // This program has just begun.
            return Ok(());
        };
        match follow(execution, person, Interrupt::Leave).await {
            End::Settled(outcome) => print::outcome(&outcome?, json),
            End::Left(task) => {
                left.tell(&task);
                Ok(())
            }
        }
    };
    let done = done.await;
    connected.close().await;
    done
}

/// Does something with a connection on which nobody answers questions, and closes it.
async fn with(
    server: Named,
    work: impl AsyncFnOnce(&Client) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let connected = connect(server, &Person::Away).await?;
    let done = work(&connected.client).await;
    connected.close().await;
    done
}

/// The same with lists, which only the older era has: a server of both is spoken to in that one.
async fn with_list(
    server: Named,
    work: impl AsyncFnOnce(&Client) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if server.era == Era::Auto {
        let older = Named {
            era: Era::Legacy,
            ..server.clone()
        };
        if let Ok(connected) = connect(older, &Person::Away).await {
            let done = work(&connected.client).await;
            connected.close().await;
            return done;
        }
    }
    with(server, work).await
}

/// A task, or that the server has none of that name.
fn found(id: &str, answer: Result<PeerTask, Fault>) -> Result<PeerTask, Failure> {
    answer.map_err(|fault| match fault.code() {
        Some(codes::INVALID_PARAMS) => Failure::NoTaskThere(id.to_owned()),
        _ => fault.into(),
    })
}

/// How often all tasks are looked at.
const LOOK: Duration = Duration::from_secs(2);
