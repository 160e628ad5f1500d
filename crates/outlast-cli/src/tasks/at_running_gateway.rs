//! Commands that change the tasks of any owner at the running gateway of a store.

use outlast::task::TaskId;

use super::stored;
use crate::args::{Delete, Prune, Rerun};
use crate::dirs;
use crate::exit::Failure;
use crate::gateway::{self, ControlReply, FirstLine};
use crate::terminal::{say, show};

/// Runs the request of an ended task again and prints the id of the new task.
pub(super) fn rerun(args: &Rerun) -> Result<(), Failure> {
    let store = args.at.store.clone().map_or_else(dirs::gateway_store, Ok)?;
    let id = stored::whole_id(&store, &args.id)?.to_string();
    let request = FirstLine::Rerun {
        id: id.clone(),
        yes: args.yes,
    };
    match gateway::ask(&store, &request)? {
        ControlReply::Created(task) => {
            show!("{task}");
            say!("  next: `outlast tasks watch {task}`");
            Ok(())
        }
        reply => Err(unexpected(reply, &id)),
    }
}

/// Deletes ended tasks. A task that cannot be deleted does not keep the others.
pub(super) fn delete(args: &Delete) -> Result<(), Failure> {
    let store = args.at.store.clone().map_or_else(dirs::gateway_store, Ok)?;
    let ids: Vec<TaskId> = args
        .ids
        .iter()
        .map(|id| stored::whole_id(&store, id))
        .collect::<Result<_, _>>()?;
    let mut first_failure = None;
    for id in ids {
        let id = id.to_string();
        match gateway::ask(&store, &FirstLine::Delete { id: id.clone() })? {
            ControlReply::Deleted => say!("deleted {id}"),
            reply => {
                let failure = unexpected(reply, &id);
                match first_failure {
                    None => first_failure = Some(failure),
                    Some(_) => failure.print(),
                }
            }
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// Deletes the ended tasks that exceed limits, and prints their ids.
pub(super) fn prune(args: &Prune) -> Result<(), Failure> {
    let store = args.at.store.clone().map_or_else(dirs::gateway_store, Ok)?;
    let request = FirstLine::Prune {
        statuses: args
            .status
            .iter()
            .map(|status| status.word().to_owned())
            .collect(),
        age_ms: args.older_than,
        count: args.keep,
        bytes: args.max_bytes,
        dry_run: args.dry_run,
    };
    let mut pruned = 0;
    loop {
        let (ids, more) = match gateway::ask(&store, &request)? {
            ControlReply::Pruned { ids, more } => (ids, more),
            reply => return Err(unexpected(reply, "")),
        };
        pruned += ids.len();
        for id in &ids {
            show!("{id}");
        }
        if args.dry_run {
            let more = if more { " and more" } else { "" };
            say!("{pruned} tasks{more} would be deleted");
            return Ok(());
        }
        if !more {
            say!("deleted {pruned} tasks");
            return Ok(());
        }
    }
}

fn unexpected(reply: ControlReply, id: &str) -> Failure {
    match reply {
        ControlReply::NoTask => Failure::NoTask(id.to_owned()),
        ControlReply::Refused(why) => Failure::RefusedByGateway(why),
        _ => Failure::RefusedByGateway(
            "the gateway sent an unexpected reply\n  next: stop it, and start this version of outlast".into(),
        ),
    }
}
