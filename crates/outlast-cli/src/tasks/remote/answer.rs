//! `outlast tasks answer`: answers the open input requests of a task at a server.

use std::time::Duration;

use outlast::client::{Execution, Inbox, InboxItem, ReceiverOptions, TaskReference};
use outlast::task::InputKinds;
use outlast::wire::{Raw, Status};

use super::{connect_for, get_task};
use crate::connect::ServerConnection;
use crate::exit::Failure;
use crate::target::NamedServer;
use crate::terminal::say;
use crate::terminal_host::{self, Lines, TerminalHost};

/// The response to send.
pub(crate) enum GivenResponse {
    Result(Raw),
    Decline,
    /// Ask the user at the terminal.
    Ask,
}

/// Answers the input requests of a task until it continues.
pub(crate) async fn answer(
    server: NamedServer,
    id: &str,
    given: &GivenResponse,
) -> Result<(), Failure> {
    let endpoint = server.target.endpoint();
    let inbox = Inbox::new(InputKinds::all());
    let host = TerminalHost::Interactive(inbox.clone(), ReceiverOptions::default());
    let (connection, id) = connect_for(server, id, &host).await?;
    let done = answer_all(&connection, endpoint, &id, given, &inbox).await;
    connection.close().await;
    done
}

async fn answer_all(
    connection: &ServerConnection,
    endpoint: String,
    id: &str,
    given: &GivenResponse,
    inbox: &Inbox,
) -> Result<(), Failure> {
    let task = get_task(connection, id).await?;
    if task.status != Status::InputRequired {
        return Err(Failure::NoOpenInputRequest(
            id.into(),
            task.status.to_string(),
        ));
    }
    let resumed = connection
        .client
        .resume(TaskReference::known_by_id(endpoint, id));
    let Ok(execution) = resumed else {
        return Ok(());
    };
    let execution = connection.hub.follow(&connection.name, execution);
    let lines = Lines::default();
    loop {
        let item = tokio::select! {
            item = inbox.first() => Some(item),
            () = continues(&execution) => None,
            () = tokio::time::sleep(INPUT_REQUEST_TIMEOUT) => return Err(Failure::InputRequestMissing(id.into())),
        };
        match item {
            Some(item) => settle(inbox, &item, given, &lines).await,
            None => break,
        }
        // Wait for the next input request, or until the task continues.
        let _ = tokio::time::timeout(INPUT_REQUEST_TIMEOUT, async {
            tokio::select! {
                _ = inbox.first() => {}
                () = continues(&execution) => {}
            }
        })
        .await;
    }
    execution.detach().await;
    say!("answered; task {id} continues");
    Ok(())
}

async fn settle(inbox: &Inbox, item: &InboxItem, given: &GivenResponse, lines: &Lines) {
    let sent = match given {
        GivenResponse::Result(result) => inbox.respond(item.id, result.clone()),
        GivenResponse::Decline => inbox.decline(item.id),
        GivenResponse::Ask => return terminal_host::answer(inbox, item, lines).await,
    };
    if let Err(late) = sent {
        say!("{late}");
    }
}

/// Resolves when the task has no open input request.
async fn continues(execution: &Execution) {
    let mut updates = execution.updates();
    loop {
        let view = execution.status();
        let waits = |status| status == Status::InputRequired;
        if view.ended.is_some()
            || view
                .task
                .is_some_and(|task| !waits(task.status) && task.updated.is_some())
        {
            return;
        }
        if updates.next().await.is_none() {
            return;
        }
    }
}

/// How long an input request may take to arrive.
const INPUT_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
