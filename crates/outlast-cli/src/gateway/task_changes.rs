//! Changes that the user of the local socket makes to tasks of any owner.

use outlast::engine::{Engine, EngineError, Retention, RetentionLimits};
use outlast::task::{RetryClass, Scope, TaskId};
use outlast_engine::store::Status;

use super::control::ControlReply;
use crate::terminal::clean;

/// Runs the request of an ended task again. Without `yes` the tool must declare that a repetition
/// has no further effect.
pub(super) async fn rerun(engine: &Engine, id: &str, yes: bool) -> ControlReply {
    let Ok(task) = id.parse::<TaskId>() else {
        return ControlReply::NoTask;
    };
    let known = match engine.load(&Scope::AnyTask, task).await {
        Ok(known) => known,
        Err(error) => return refused(&error, id),
    };
    if known.origin.retry == RetryClass::Never && !yes {
        let tool = clean(known.origin.tool.as_deref().unwrap_or("this request"));
        return ControlReply::Refused(format!(
            "{tool} may have its effect twice: it does not declare that it only reads or is idempotent\n  next: `outlast tasks rerun {id} --yes`"
        ));
    }
    match engine.rerun(&Scope::AnyTask, task).await {
        Ok(Some(new)) => ControlReply::Created(new.id.to_string()),
        Ok(None) => not_ended(id),
        Err(error) => refused(&error, id),
    }
}

/// Deletes an ended task.
pub(super) async fn delete(engine: &Engine, id: &str) -> ControlReply {
    let Ok(task) = id.parse::<TaskId>() else {
        return ControlReply::NoTask;
    };
    match engine.delete_ended(&Scope::AnyTask, task).await {
        Ok(true) => ControlReply::Deleted,
        Ok(false) => not_ended(id),
        Err(error) => refused(&error, id),
    }
}

/// Deletes ended tasks that exceed `limits`, for each status separately.
pub(super) async fn prune(
    engine: &Engine,
    statuses: &[String],
    limits: RetentionLimits,
    dry_run: bool,
) -> ControlReply {
    let limits_of = |status: Status| {
        let is_given = statuses.is_empty() || statuses.iter().any(|word| word == status.word());
        if is_given {
            limits
        } else {
            RetentionLimits::default()
        }
    };
    let retention = Retention::default()
        .with_completed(limits_of(Status::Completed))
        .with_failed(limits_of(Status::Failed))
        .with_cancelled(limits_of(Status::Cancelled));
    let limit = if dry_run {
        MAX_SHOWN_TASKS
    } else {
        MAX_PRUNED_TASKS
    };
    match engine.prune(&retention, limit, dry_run).await {
        Ok(excess) => ControlReply::Pruned {
            ids: excess.tasks.iter().map(|(id, _)| id.to_string()).collect(),
            more: excess.more,
        },
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}

fn not_ended(id: &str) -> ControlReply {
    ControlReply::Refused(format!(
        "task {id} has not ended\n  next: `outlast tasks cancel {id}`, or wait for its end"
    ))
}

fn refused(error: &EngineError, id: &str) -> ControlReply {
    match error {
        EngineError::NotFound | EngineError::Expired => ControlReply::NoTask,
        EngineError::NoRunner(server) => ControlReply::Refused(format!(
            "the gateway does not have the server {} of task {id}\n  next: start the gateway with this server",
            clean(server.as_ref())
        )),
        error => ControlReply::Refused(format!("task {id}: {error}")),
    }
}

/// How many tasks one request deletes. The limit keeps the time until the reply short.
const MAX_PRUNED_TASKS: usize = 500;

/// How many tasks a dry run lists.
const MAX_SHOWN_TASKS: usize = 10_000;
