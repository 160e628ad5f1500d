//! `tasks/get`, `tasks/result`, `tasks/list` and `tasks/cancel` for a server, and the status
//! notifications to it.

use std::sync::Arc;

use outlast_engine::engine::{EndedTask, EngineError, Event};
use outlast_engine::store::Snapshot;
use outlast_engine::{Ending, InputResponse, Scope, TaskId};
use outlast_wire::neutral::{Phase, TaskView};
use outlast_wire::{Raw, RawRef, Status, codes, params, v1};

use super::{Receiver, owner_of};
use crate::client::handler::TASK_CANCELLED;
use crate::client::hosted_tasks::CANCELLED_MESSAGE;
use crate::client::rpc::RpcChannel;
use crate::engine_errors::{cancel_to_wire, to_wire};

impl Receiver {
    /// Handles a task method; `None` for any other method.
    pub(crate) async fn serve(
        &self,
        channel: &RpcChannel,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> Option<InputResponse> {
        let owner = owner_of(channel);
        let scope = Scope::OwnedBy(owner.clone());
        let answered = match method {
            v1::method::GET => self.get(&scope, params).await,
            v1::method::CANCEL => return Some(self.cancel(&scope, params).await),
            v1::method::RESULT => return Some(self.result(&scope, params).await),
            v1::method::LIST => {
                let cursor = match params::cursor(params) {
                    Ok(cursor) => cursor,
                    Err(error) => return Some(InputResponse::Error(error.to_raw())),
                };
                let page = self
                    .engine
                    .page(&owner, cursor.as_deref(), PAGE_TASKS)
                    .await;
                page.map(|page| {
                    let texts: Vec<_> = page.tasks.iter().map(|task| task.id().text()).collect();
                    let views = page.tasks.iter().zip(&texts);
                    let now = self.engine.now();
                    let views =
                        views.map(|(task, text)| self.with_seed_messages(task.view(text, now)));
                    v1::list_result(views, page.next.as_deref())
                })
            }
            _ => return None,
        };
        Some(match answered {
            Ok(result) => InputResponse::Result(result),
            Err(error) => refused(&error),
        })
    }

    async fn get(&self, scope: &Scope, params: Option<RawRef<'_>>) -> Result<Raw, EngineError> {
        let task = self.engine.get(scope, task_id(params)?).await?;
        let text = task.id().text();
        Ok(v1::task(
            &self.with_seed_messages(task.view(&text, self.engine.now())),
        ))
    }

    /// S0-59 to S0-64: the engine refuses unknown and ended tasks.
    async fn cancel(&self, scope: &Scope, params: Option<RawRef<'_>>) -> InputResponse {
        let id = match task_id(params) {
            Ok(id) => id,
            Err(error) => return refused(&error),
        };
        if self.engine.get(scope, id).await.is_ok() {
            self.reasons.set(id, TASK_CANCELLED);
        }
        match self.engine.cancel_now(scope, id).await {
            Ok(task) => {
                let text = id.text();
                InputResponse::Result(v1::task(
                    &self.with_seed_messages(task.view(&text, self.engine.now())),
                ))
            }
            Err(error) => {
                let error = cancel_to_wire(&self.engine, scope, id, &error).await;
                InputResponse::Error(error.to_raw())
            }
        }
    }

    /// Waits for the outcome (S0-33, V1-RES-2), and adds the task to it (S0-37, S0-81).
    async fn result(&self, scope: &Scope, params: Option<RawRef<'_>>) -> InputResponse {
        let id = match task_id(params) {
            Ok(id) => id,
            Err(error) => return refused(&error),
        };
        let EndedTask { summary, body } = match self.engine.wait(scope, id).await {
            Ok(settled) => settled,
            Err(error) => return refused(&error),
        };
        match (summary.ending, body) {
            (Ending::Result | Ending::ToolError, Some(body)) => {
                match v1::payload_result(body.borrow(), id.text().as_str()) {
                    Ok(result) => InputResponse::Result(result),
                    Err(_) => InputResponse::Error(
                        codes::internal("the result is not an object").to_raw(),
                    ),
                }
            }
            // V1-RES-4, V1-RES-13.
            (Ending::Error(_), Some(error)) => InputResponse::Error(error),
            // A1-1, S0-63.
            (Ending::Cancelled, _) => {
                InputResponse::Error(codes::task_cancelled(id.text().as_str()).to_raw())
            }
            (_, None) => refused(&EngineError::Expired),
        }
    }

    /// Adds the status messages of the seeds where the engine has none (S0-61, S0-72).
    fn with_seed_messages<'a>(&'a self, mut view: TaskView<'a>) -> TaskView<'a> {
        match view.phase {
            Phase::AwaitingInput => view.message = Some(&self.options.waiting_message),
            Phase::Ended(outlast_wire::neutral::Ending::Cancelled) => {
                view.message = Some(CANCELLED_MESSAGE);
            }
            _ => {}
        }
        view
    }

    /// Notifies the server of every change of a task (S0-36, S1-18). A failed notification has no
    /// consequence (S0-69).
    pub(super) async fn send_status_changes(
        self: Arc<Self>,
        channel: Arc<RpcChannel>,
        scope: Scope,
        id: TaskId,
    ) {
        let Ok(mut watch) = self.engine.watch(&scope, id).await else {
            return;
        };
        // The create result already reported `working`.
        let mut reported = (Status::Working, None);
        let mut next = Some(watch.first.clone());
        loop {
            if let Some(task) = next.take() {
                let text = task.id().text();
                let view = self.with_seed_messages(task.view(&text, self.engine.now()));
                let now = (v1::status(view.phase), view.message.map(str::to_owned));
                if now != reported {
                    let params = v1::task(&view);
                    if let Err(error) = channel
                        .notify(v1::method::STATUS, Some(params.borrow()), Vec::new())
                        .await
                    {
                        tracing::debug!(%error, "could not send a status notification");
                        return;
                    }
                    reported = now;
                }
            }
            match watch.next().await {
                Some(Event::Stored(task)) => next = Some(Snapshot::from(task)),
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// An id that cannot be parsed is an unknown task.
fn task_id(params: Option<RawRef<'_>>) -> Result<TaskId, EngineError> {
    let id = params::task_id(params).map_err(|_| EngineError::NotFound)?;
    id.parse().map_err(|_| EngineError::NotFound)
}

fn refused(error: &EngineError) -> InputResponse {
    InputResponse::Error(to_wire(error).to_raw())
}

/// How many tasks a page contains.
const PAGE_TASKS: usize = 100;
