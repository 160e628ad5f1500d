//! `tasks/get`, `tasks/list` and `tasks/cancel`: answered at once, never on a stream of their own.

use outlast_engine::TaskId;
use outlast_engine::engine::EngineError;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{RawRef, codes, params, v1};

use crate::front::errors::to_wire;
use crate::front::{Reply, Session, audit};

impl Session {
    /// V1-GET-1, V1-GET-5, V1-META-6.
    pub(super) async fn get_task(&self, params: Option<RawRef<'_>>) -> Reply {
        let id = match named(params) {
            Ok(id) => id,
            Err(error) => return Reply::from(error),
        };
        match self.front.engine.get(&self.scope(), id).await {
            Ok(task) => Reply::Result(v1::task(&task.view(&id.text(), self.front.engine.now()))),
            Err(error) => self.refused(v1::method::GET, &error),
        }
    }

    /// V1-LIST-1 to V1-LIST-7.
    pub(super) async fn list_tasks(&self, params: Option<RawRef<'_>>) -> Reply {
        let cursor = match params::cursor(params) {
            Ok(cursor) => cursor,
            Err(error) => return Reply::from(error),
        };
        match self
            .front
            .engine
            .page(&self.owner, cursor.as_deref(), PAGE)
            .await
        {
            Ok(page) => {
                let texts: Vec<_> = page.tasks.iter().map(|task| task.id().text()).collect();
                let now = self.front.engine.now();
                let views = page
                    .tasks
                    .iter()
                    .zip(&texts)
                    .map(|(task, text)| task.view(text, now));
                Reply::Result(v1::list_result(views, page.next.as_deref()))
            }
            Err(error) => Reply::from(to_wire(&error)),
        }
    }

    /// V1-CANCEL-1, V1-CANCEL-3, V1-CANCEL-7.
    pub(super) async fn cancel_task(&self, params: Option<RawRef<'_>>) -> Reply {
        let id = match named(params) {
            Ok(id) => id,
            Err(error) => return Reply::from(error),
        };
        match self.front.engine.cancel_now(&self.scope(), id).await {
            Ok(task) => {
                audit::cancelled(&self.owner, id);
                let text = id.text();
                Reply::Result(v1::task(&task.view(&text, self.front.engine.now())))
            }
            Err(error) => self.refused(v1::method::CANCEL, &error),
        }
    }

    /// What the engine refused, and a note if somebody looked for a task that is not there.
    pub(super) fn refused(&self, method: &str, error: &EngineError) -> Reply {
        if matches!(error, EngineError::NotFound) {
            audit::not_found(&self.owner, method);
        }
        Reply::from(to_wire(error))
    }
}

/// The task that the params name. A text that cannot be an id of ours names no task.
pub(super) fn named(params: Option<RawRef<'_>>) -> Result<TaskId, ErrorObject> {
    params::task_id(params)?
        .parse()
        .map_err(|_| codes::task_not_found())
}

/// How many tasks are on a page.
const PAGE: usize = 50;
