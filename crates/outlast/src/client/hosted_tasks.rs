//! Tasks that this program hosts, as the program itself sees them: it lists, inspects and cancels
//! them (S1-3, S1-36, S1-80).

use std::sync::Arc;

use outlast_engine::engine::{EndedTask, EngineError};
use outlast_engine::store::Snapshot;
use outlast_engine::{Ending, Engine, Owner, Scope, TaskId};
use outlast_wire::envelope::{ErrorObject, ErrorView};
use outlast_wire::neutral::Phase;
use outlast_wire::{PeerTask, Raw, RawRef, codes, v1};

use super::handler::TASK_CANCELLED;
use super::receiver::AbortReasons;
use crate::engine_errors::{cancel_to_wire, to_wire};

/// The tasks that are hosted for one connection, or by one
/// [`TaskManager`](super::TaskManager).
///
/// ```no_run
/// use outlast::client::Client;
///
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// if let Some(tasks) = client.hosted_tasks().await? {
///     let page = tasks.list(None).await.map_err(|error| format!("{error:?}"))?;
///     for task in page.tasks {
///         println!("{} {}", task.id, task.status);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HostedTasks {
    engine: Engine,
    owner: Owner,
    /// The status message of a task that awaits input and has no message of its own.
    waiting_message: Option<Arc<str>>,
    /// Where the reason of an abort is recorded, for tasks that a handler runs.
    reasons: Option<AbortReasons>,
}

/// A page of hosted tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostedTasksPage {
    /// The tasks.
    pub tasks: Vec<PeerTask>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
}

impl HostedTasks {
    /// Tasks that no handler runs.
    pub(super) fn new(engine: Engine, owner: Owner) -> Self {
        Self {
            engine,
            owner,
            waiting_message: None,
            reasons: None,
        }
    }

    /// Tasks that a handler runs.
    pub(super) fn of_receiver(self, waiting_message: Arc<str>, reasons: AbortReasons) -> Self {
        Self {
            waiting_message: Some(waiting_message),
            reasons: Some(reasons),
            ..self
        }
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn scope(&self) -> Scope {
        Scope::OwnedBy(self.owner.clone())
    }

    /// The task; the error of an unknown task is -32602.
    pub async fn task(&self, task: &str) -> Result<PeerTask, ErrorObject> {
        let found = self.engine.get(&self.scope(), id(task)?).await;
        found
            .map(|task| self.describe(&task))
            .map_err(|error| to_wire(&error))
    }

    /// Waits for the end of a task and returns its result or its error.
    pub async fn result(&self, task: &str) -> Result<Raw, ErrorObject> {
        let ended = self.engine.wait(&self.scope(), id(task)?).await;
        let EndedTask { summary, body } = ended.map_err(|error| to_wire(&error))?;
        match (summary.ending, body) {
            (Ending::Result | Ending::ToolError, Some(body)) => Ok(body),
            (Ending::Error(_), Some(error)) => Err(match ErrorView::read(error.borrow()) {
                Some(view) => ErrorObject {
                    code: view.code,
                    message: view.message.into_owned(),
                    data: view.data.map(RawRef::to_raw),
                },
                None => codes::internal("the error of the task is not an error object"),
            }),
            (Ending::Cancelled, _) => Err(codes::task_cancelled(task)),
            (_, None) => Err(to_wire(&EngineError::Expired)),
        }
    }

    /// A page of the tasks after `cursor`.
    pub async fn list(&self, cursor: Option<&str>) -> Result<HostedTasksPage, ErrorObject> {
        let page = self.engine.page(&self.owner, cursor, PAGE_TASKS).await;
        let page = page.map_err(|error| to_wire(&error))?;
        Ok(HostedTasksPage {
            tasks: page.tasks.iter().map(|task| self.describe(task)).collect(),
            next_cursor: page.next,
        })
    }

    /// Cancels a task. A task that has ended is an error, -32602.
    pub async fn cancel(&self, task: &str) -> Result<PeerTask, ErrorObject> {
        let (scope, id) = (self.scope(), id(task)?);
        if let Some(reasons) = &self.reasons
            && self.engine.get(&scope, id).await.is_ok()
        {
            reasons.set(id, TASK_CANCELLED);
        }
        match self.engine.cancel_now(&scope, id).await {
            Ok(task) => Ok(self.describe(&task.into())),
            Err(error) => Err(cancel_to_wire(&self.engine, &scope, id, &error).await),
        }
    }

    /// Cancels a task that is open, then removes it.
    pub(super) async fn remove(&self, task: &str) -> Result<(), ErrorObject> {
        let (scope, id) = (self.scope(), id(task)?);
        // A task that has ended is only removed.
        let _ = self.engine.cancel_now(&scope, id).await;
        let removed = self.engine.delete_ended(&scope, id).await;
        if removed.map_err(|error| to_wire(&error))? {
            Ok(())
        } else {
            Err(to_wire(&EngineError::NotFound))
        }
    }

    pub(super) fn describe(&self, task: &Snapshot) -> PeerTask {
        let text = task.id().text();
        let view = task.view(&text, self.engine.now());
        let message = match view.phase {
            Phase::AwaitingInput => view.message.or(self.waiting_message.as_deref()),
            Phase::Ended(outlast_wire::neutral::Ending::Cancelled) => Some(CANCELLED_MESSAGE),
            _ => view.message,
        };
        PeerTask {
            id: view.id.to_owned(),
            status: v1::status(view.phase),
            message: message.map(str::to_owned),
            created: Some(view.created),
            updated: Some(view.updated),
            ttl_ms: view.ttl_ms,
            poll_interval_ms: view.poll_interval_ms,
        }
    }
}

fn id(task: &str) -> Result<TaskId, ErrorObject> {
    task.parse().map_err(|_| to_wire(&EngineError::NotFound))
}

/// The status text of a cancelled task.
pub(super) const CANCELLED_MESSAGE: &str = "Task cancelled by server";

/// How many tasks a page contains.
const PAGE_TASKS: usize = 100;
