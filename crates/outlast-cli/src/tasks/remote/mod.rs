//! `outlast tasks … TARGET`: tasks at a server.

mod answer;
mod task_output;

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::client::{Client, Era, HubError, TaskReference};
use outlast::engine::{Clock, SystemClock};
use outlast::wire::{PeerTask, codes};

use crate::call::{End, Interrupt, follow, print};
use crate::connect::{ServerConnection, connect};
use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::sessions::Purpose;
use crate::target::{NamedServer, StartedBy};
use crate::task_location::TaskLocation;
use crate::tasks::{TaskRow, print_table};
use crate::terminal::{self, say};
use crate::terminal_host::TerminalHost;

pub(crate) use answer::{GivenResponse, answer};

pub(crate) async fn list(server: NamedServer, limit: usize, json: bool) -> Result<(), Failure> {
    let anonymous = server.anonymous;
    with_list(server, async |connection| {
        let tasks = newest(connection, limit).await?;
        if json {
            terminal::out_json(&task_output::list(&tasks).to_string());
        }
        match (tasks.is_empty(), json) {
            // Also with JSON: the empty list does not mean that the caller has no tasks.
            (true, _) if anonymous => {
                say!(
                    "this server lists no tasks: without a token it cannot distinguish its clients"
                );
                say!(
                    "  next: use the id of a task (`outlast tasks get TARGET ID`), or give a token \
                     with --token"
                );
            }
            (true, false) => {
                say!("you have no tasks at this server; `outlast call --detach` creates one");
            }
            (false, false) => {
                let shown: Vec<_> = tasks.iter().map(TaskRow::remote).collect();
                print_table(&shown, SystemClock.now());
            }
            (_, true) => {}
        }
        Ok(())
    })
    .await
}

pub(crate) async fn get(server: NamedServer, id: &str, json: bool) -> Result<(), Failure> {
    with_task(server, id, async |connection, id| {
        let task = get_task(connection, id).await?;
        if json {
            terminal::out_json(&task_output::task_json(&task).to_string());
        } else {
            task_output::print_task(&task);
        }
        Ok(())
    })
    .await
}

/// Waits for the end of the task and prints its outcome.
pub(crate) async fn result(server: NamedServer, id: &str, json: bool) -> Result<(), Failure> {
    let host = TerminalHost::Absent;
    attached(server, id, &host, json).await
}

pub(crate) async fn cancel(server: NamedServer, id: &str, json: bool) -> Result<(), Failure> {
    with_task(server, id, async |connection, id| {
        // Read the task first: some servers accept the cancellation of a task that has ended, and
        // others then report an unknown task.
        refuse_ended(&get_task(connection, id).await?)?;
        let task = match connection.hub.cancel_task(&connection.name, id).await {
            // It ended between the two requests.
            Err(error @ HubError::AlreadyFinished(_)) => {
                refuse_ended(&get_task(connection, id).await?)?;
                return Err(error.into());
            }
            cancelled => cancelled?,
        };
        if json {
            terminal::out_json(&task_output::task_json(&task).to_string());
        } else {
            terminal::out(TaskRow::remote(&task).status());
        }
        Ok(())
    })
    .await
}

/// Fails if the task has ended.
fn refuse_ended(task: &PeerTask) -> Result<(), Failure> {
    if task.status.is_terminal() {
        Err(Failure::HasEnded(task.id.clone(), task.status.to_string()))
    } else {
        Ok(())
    }
}

/// Follows one task to its end.
pub(crate) async fn watch(
    server: NamedServer,
    id: &str,
    host: &TerminalHost,
    json: bool,
) -> Result<(), Failure> {
    attached(server, id, host, json).await
}

/// Prints every change to any task of the caller until Ctrl-C.
pub(crate) async fn watch_all(server: NamedServer, json: bool) -> Result<(), Failure> {
    with_list(server, async |connection| {
        let mut known = BTreeMap::new();
        let mut interrupts = Interrupts::listen();
        loop {
            for task in connection.client.list_tasks().await?.into_iter().rev() {
                let state = (task.status, task.message.clone());
                if known.insert(task.id.clone(), state.clone()) != Some(state) {
                    if json {
                        terminal::out_json(&task_output::task_json(&task).to_string());
                    } else {
                        terminal::out(TaskRow::remote(&task).line());
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = interrupts.next() => return Ok(()),
            }
        }
    })
    .await
}

/// Follows a task that another command created.
async fn attached(
    server: NamedServer,
    id: &str,
    host: &TerminalHost,
    json: bool,
) -> Result<(), Failure> {
    let (endpoint, location) = (server.target.endpoint(), TaskLocation::of(&server));
    let (connection, id) = connect_for(server, id, host).await?;
    let id = id.as_str();
    let done = async {
        get_task(&connection, id).await?;
        let reference = TaskReference::known_by_id(endpoint, id);
        let Ok(execution) = connection.client.resume(reference) else {
            // A reference cannot be in use, because this process has just started.
            return Ok(());
        };
        let execution = connection.hub.follow(&connection.name, execution);
        match follow(&execution, host, Interrupt::Detach).await {
            End::Settled(Ok(outcome), _) => print::outcome(&outcome, json),
            End::Settled(Err(why), task) => Err(location.failure(why, task.as_deref())),
            End::Detached(task) => {
                location.print_next_step(&task);
                Ok(())
            }
        }
    };
    let done = done.await;
    connection.close().await;
    done
}

/// Runs `work` for a task at a server, on a connection that answers no input requests.
async fn with_task(
    server: NamedServer,
    id: &str,
    work: impl AsyncFnOnce(&ServerConnection, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (connection, id) = connect_for(server, id, &TerminalHost::Absent).await?;
    let done = work(&connection, &id).await;
    connection.close().await;
    done
}

/// Runs `work` on a connection that can list tasks.
async fn with_list(
    server: NamedServer,
    work: impl AsyncFnOnce(&ServerConnection) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let connection = connect_to_list(server, &TerminalHost::Absent, Purpose::Tasks).await?;
    let done = work(&connection).await;
    connection.close().await;
    done
}

/// Connects in the legacy era if the server supports both, because only that era lists tasks.
async fn connect_to_list(
    server: NamedServer,
    host: &TerminalHost,
    purpose: Purpose<'_>,
) -> Result<ServerConnection, Failure> {
    if server.era == Era::Auto {
        let older = NamedServer {
            era: Era::Legacy,
            ..server.clone()
        };
        match connect(older, host, purpose).await {
            // Do not start or wait for the server a second time if it does not run.
            Err(Failure::ConnectError(why)) if why.is_absent() => {
                return Err(Failure::ConnectError(why));
            }
            Err(_) => {}
            connection => return connection,
        }
    }
    connect(server, host, purpose).await
}

/// Connects to the server of the task `id`, which may be shortened. Also returns the whole id.
async fn connect_for(
    server: NamedServer,
    id: &str,
    host: &TerminalHost,
) -> Result<(ServerConnection, String), Failure> {
    let purpose = Purpose::Task(id);
    if id.len() >= MIN_WHOLE_ID_CHARS || server.starts != StartedBy::Other {
        return Ok((connect(server, host, purpose).await?, id.to_owned()));
    }
    let connection = connect_to_list(server, host, purpose).await?;
    match whole_id(&connection.client, id).await {
        Ok(id) => Ok((connection, id)),
        Err(failure) => {
            connection.close().await;
            Err(failure)
        }
    }
}

/// Completes a shortened id. If the server cannot list tasks or lists no match, returns `id`
/// unchanged.
async fn whole_id(client: &Client, id: &str) -> Result<String, Failure> {
    // A server that cannot list tasks reports an unknown id itself.
    let tasks = client.list_tasks().await.unwrap_or_default();
    let ids: Vec<_> = tasks.into_iter().map(|task| task.id).collect();
    if ids.iter().any(|whole| whole == id) {
        return Ok(id.to_owned());
    }
    let mut matching = ids.into_iter().filter(|whole| whole.starts_with(id));
    match (matching.next(), matching.next()) {
        (None, _) => Ok(id.to_owned()),
        (Some(only), None) => Ok(only),
        (Some(one), Some(other)) => Err(Failure::ambiguous(id, &[one, other])),
    }
}

/// Returns the task, or the failure that the server does not have it.
async fn get_task(connection: &ServerConnection, id: &str) -> Result<PeerTask, Failure> {
    let response = connection.hub.get_task(&connection.name, id).await;
    response.map_err(|error| match error {
        HubError::Request(fault) if fault.code() == Some(codes::INVALID_PARAMS) => {
            Failure::NoTaskAtServer(id.to_owned())
        }
        error => error.into(),
    })
}

/// The newest tasks, up to `limit`. Pages after the last one that is needed are not read.
async fn newest(connection: &ServerConnection, limit: usize) -> Result<Vec<PeerTask>, Failure> {
    let (mut tasks, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let page = connection
            .hub
            .list_tasks(&connection.name, cursor.as_deref());
        let page = page.await?;
        tasks.extend(page.tasks);
        let is_last = page.next_cursor.is_none() || page.next_cursor == cursor;
        if is_last || tasks.len() >= limit {
            break;
        }
        cursor = page.next_cursor;
    }
    tasks.truncate(limit);
    Ok(tasks)
}

/// An id of at least this length is not shortened.
const MIN_WHOLE_ID_CHARS: usize = 20;

/// A server that returns another cursor with every page has no last one.
const MAX_PAGES: usize = 1_000;

/// How often all tasks are polled.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
